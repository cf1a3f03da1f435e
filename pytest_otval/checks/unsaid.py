"""What tests require and the instruction never says."""

from __future__ import annotations

import posixpath
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice

from pytest_otval.checks.context import CheckContext
from pytest_otval.checks.image_files import ImageFiles, known_image
from pytest_otval.checks.imports import Taken, imported_modules, taken_names
from pytest_otval.checks.reads import MAX_PYTHON, required_paths
from pytest_otval.checks.registry import Place, check
from pytest_otval.checks.said import folders_of, instructions, names_file
from pytest_otval.core import Severity
from pytest_otval.task.load import Step

NOT_THE_TASKS = re.compile(
    r"/(?:tests|logs|solution|setup_files|tmp|dev|proc|sys|etc|usr|bin|sbin|lib\w*|run|var|boot|mnt|nix)/.*|.*/\.[^/]*"
)
"""Places of the harness and of the system, and hidden files, which programs make for themselves."""
_MADE_BY_TOOLS = re.compile(
    r"[^.]*|CMakeCache\.txt|compile_commands\.json|config\.json|tokenizer\w*\.json|model\.safetensors|package(?:-lock)?\.json"
    r"|[\w\-]+\.lock|go\.(?:mod|sum)|pyproject\.toml|__init__\.py|great_expectations\.yml"
)
"""Names without a suffix, and of files that programs make without being told their names."""
_QUOTED_PATH = re.compile(r"""["'](/[\w.@+\-]+(?:/[\w.@+\-]+)*)["'/]""")
_JOINED = re.compile(r"""[/,]\s*["']([\w@+\-]+\.\w+)["']""")
"""The last part of ``folder / "name.txt"`` and ``join(folder, "name.txt")``."""
_MAX_NAMES = 300
_MAX_TOLD = 256 * 1024
_MAX_SHOWN = 8 * 1024 * 1024
"""Bytes of environment/ that are searched for a name; in more it may stand somewhere."""


@check(
    "unsaid-path",
    severity=Severity.WARNING,
    family="unsaid",
    explains="Tests read a file that the image does not bring and the instruction does not name, so nobody can know "
    "that it must be made.",
    fix="name the file in the instruction, or ship it in environment/",
)
def unsaid_path(context: CheckContext) -> Iterator[Place]:
    """Look for absolute paths that Python tests surely read, and that nothing an agent can see mentions."""
    told = _told(context)
    wanted: dict[str, tuple[str, int]] = {}
    for step in context.steps if told else ():
        texts = test_texts(context, context.test_folders(step))
        names = _doubtful(texts, told)
        images = _images(context, step) if names else ()
        if not images or any(image.opaque for image in images):
            continue
        names = {name for name in names if not any(image.may_have_name(name) for image in images)}
        names = {name for name in names if not _MADE_BY_TOOLS.fullmatch(name)}
        for path, place in required_paths(texts, names).items():
            absent = all(image.has(path) is False for image in images)
            if absent and not NOT_THE_TASKS.fullmatch(path) and not names_file(told, path):
                wanted.setdefault(path, place)
    for path in _shown_nowhere(context, wanted, names_file):
        file, line = wanted[path]
        message = f"{path} is read, which neither the image has nor the instruction names"
        yield Place(file, f"{message}{_elsewhere(told, path)}", line)


def _told(context: CheckContext) -> str:
    """Return all that the instructions say; empty where that is more than anybody writes."""
    told = "\n".join(source.text for source in instructions(context))
    return told if len(told) <= _MAX_TOLD else ""


def _shown_nowhere(context: CheckContext, wanted: Iterable[str], mentions: Callable[[str, str], bool]) -> list[str]:
    """Return what no file of environment/ mentions, so that an agent cannot learn of it there."""
    left = list(wanted)
    read = 0
    for source in context.sources("environment") if left else ():
        read += len(source.raw)
        if not source.whole or read > _MAX_SHOWN:
            return []
        left = [one for one in left if not mentions(source.text, one)]
    return left


def _elsewhere(told: str, path: str) -> str:
    """Say where the instruction puts a file of the same name."""
    name = posixpath.basename(path)
    folder = next(iter(folders_of(told, name)), None)
    return "" if folder is None else f": it says {posixpath.join(folder, name)}"


@lru_cache(maxsize=4)
def test_texts(context: CheckContext, folders: tuple[str, ...]) -> Mapping[str, str]:
    """Return the texts of one /tests by path; files of the first folder cover those of the others."""
    texts: dict[str, str] = {}
    below: set[str] = set()
    for folder in folders:
        for source in context.sources(folder):
            name = source.path.removeprefix(f"{folder}/")
            if name not in below and source.whole and not source.is_binary:
                texts[source.path] = source.text
            below.add(name)
    return texts


def _doubtful(texts: Mapping[str, str], told: str) -> set[str]:
    """Return names of files in Python tests that the instruction may not mean; looking is cheaper than parsing."""
    found: set[str] = set()
    for file, text in texts.items():
        if not file.endswith((".py", ".sh")) or len(text) > MAX_PYTHON:
            continue
        whole = set(_QUOTED_PATH.findall(text))
        for path in islice(whole, _MAX_NAMES):
            if path.count("/") > 1 and not NOT_THE_TASKS.fullmatch(path) and not names_file(told, path):
                found.add(posixpath.basename(path))
        for name in islice(set(_JOINED.findall(text)), _MAX_NAMES):
            # Well under the folder that the instruction says, as far as the text tells, or under none that it says.
            homes = (f"{folder}/" for folder in folders_of(told, name))
            meant = any(home.startswith(f"{root}/") for home in homes for root in islice(whole, _MAX_NAMES))
            if not meant and not names_file(told, f"/?/{name}"):
                found.add(name)
    return found


def _images(context: CheckContext, step: Step) -> Sequence[ImageFiles]:
    """Return what is known of the images that may bring a file to the tests."""
    folders = ["environment"]
    if step.verifier_image is not None:
        folders.append(context.relative(step.verifier_image.context))
    return [known_image(context, folder) for folder in dict.fromkeys(folders)]


@check(
    "unsaid-name",
    severity=Severity.WARNING,
    family="unsaid",
    explains="Tests take a function or class by a name that neither the instruction nor a file of the image mentions, "
    "so a right solution under another name fails.",
    fix="name it in the instruction, with its arguments",
)
def unsaid_name(context: CheckContext) -> Iterator[Place]:
    """Look for names that Python tests take from a module of the agent's and that nothing an agent can see mentions."""
    told = _told(context)
    wanted: dict[str, tuple[str, Taken]] = {}
    for step in context.steps if told else ():
        texts = test_texts(context, context.test_folders(step))
        for path, taken in _agent_names(context, {file: texts[file] for file in texts if file.endswith(".py")}, told):
            if not _mentions(told, taken.name):
                wanted.setdefault(taken.name, (path, taken))
    for name in _shown_nowhere(context, islice(wanted, _MAX_NAMES), _mentions):
        path, taken = wanted[name]
        yield Place(path, f"{name} is taken from {taken.module}, and nothing the agent can see mentions it", taken.line)


def _mentions(text: str, name: str) -> bool:
    return name in text and re.search(rf"(?<![A-Za-z0-9_]){re.escape(name)}(?![A-Za-z0-9_])", text) is not None


def _agent_names(context: CheckContext, texts: Mapping[str, str], told: str) -> Iterator[tuple[str, Taken]]:
    """Yield what Python tests take from modules that the instruction names as files."""
    own = {posixpath.splitext(posixpath.basename(path))[0] for path in texts}
    modules = set[str]().union(*map(imported_modules, texts.values())) - own - sys.stdlib_module_names
    named = {one for one in islice(modules, _MAX_NAMES) if f"{one}.py" in told and _mentions(told, f"{one}.py")}
    if not named or known_image(context, "environment").opaque:
        return
    for path, text in texts.items():
        if named & imported_modules(text):
            yield from ((path, taken) for taken in taken_names(text) if taken.module in named)
