"""Verifiers in an image of their own: they see what that image holds and what is carried over, nothing else."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from pytest_otval.checks.context import CheckContext
from pytest_otval.checks.image_files import ImageFiles, known_image
from pytest_otval.checks.reads import required_paths
from pytest_otval.checks.registry import Place, check
from pytest_otval.checks.said import instructions, line_at
from pytest_otval.checks.unsaid import test_texts
from pytest_otval.core import Severity
from pytest_otval.task.lines import Lines
from pytest_otval.task.load import TASK_TOML, Step

_PUBLISHED = "/logs/artifacts"
"""Always carried over."""
_SYSTEM = re.compile(r"/(?:tests|logs|dev|proc|sys|etc|usr|bin|sbin|lib\w*|run|nix)(?:/.*)?")
_PATH = re.compile(r"""["'\s=(](/[\w.@+\-]+(?:/[\w.@+\-]+)*)""")
_MAX_NAMES = 500
_NAME = re.compile(r"""["']([\w@+\-]+\.\w+)["']""")


@dataclass(frozen=True, slots=True)
class _Separate:
    """A step with a separate verifier, and what is known of the verifier's image."""

    step: Step
    folder: str
    image: ImageFiles
    bundled: bool


def _separate(context: CheckContext) -> Iterator[_Separate]:
    images: dict[str, ImageFiles] = {}
    for step in context.steps:
        if step.verifier_image is not None:
            folder = context.relative(step.verifier_image.context)
            image = images.setdefault(folder, known_image(context, folder))
            yield _Separate(step, folder, image, step.verifier_image.bundled)


@check(
    "separate-no-tests",
    severity=Severity.ERROR,
    family="separate",
    explains="Nothing is copied to /tests of a verifier with an image of its own: the image has to bring test.sh.",
    fix="write `COPY . /tests/` in tests/Dockerfile",
)
def no_tests(context: CheckContext) -> Iterator[Place]:
    """Look for verifier images that surely have no /tests/test.sh."""
    for path in dict.fromkeys(
        f"{one.folder}/Dockerfile"
        for one in _separate(context)
        if one.bundled and one.image.has("/tests/test.sh") is False and not context.windows
    ):
        yield Place(path, "the verifier's image has no /tests/test.sh")


@check(
    "separate-test-file-missing",
    severity=Severity.WARNING,
    family="separate",
    explains="A file of tests/ that the verifier's image does not copy is not there when the tests ask for it.",
    fix="copy the file in tests/Dockerfile, or all of them: `COPY . /tests/`",
)
def test_file_missing(context: CheckContext) -> Iterator[Place]:
    """Look for files of tests/ that test scripts name under /tests and that the verifier's image lacks."""
    seen: set[str] = set()
    for one in _separate(context):
        if not one.bundled or one.image.opaque or one.image.has("/tests/test.sh") is False:
            continue
        for file, text in test_texts(context, context.test_folders(one.step)).items():
            for found in re.finditer(r"(?<![\w.\-])/tests/([\w.\-]+(?:/[\w.\-]+)*)", text):
                below = found[1].rstrip(".")
                here = any(context.file(f"{folder}/{below}") for folder in context.test_folders(one.step))
                if here and below not in seen and one.image.has(f"/tests/{below}") is False:
                    seen.add(below)
                    message = f"the verifier's image has no /tests/{below}: {one.folder}/Dockerfile does not copy it"
                    yield Place(file, message, line_at(text, found.start()))


@check(
    "separate-path-missing",
    severity=Severity.WARNING,
    family="separate",
    explains="The tests read a file that their image does not have and that is not carried over from the agent's.",
    fix="list the file under `artifacts` in task.toml, or copy it in tests/Dockerfile",
)
def path_missing(context: CheckContext) -> Iterator[Place]:
    """Look for absolute paths that Python tests surely read, and that nothing brings into the verifier's image."""
    seen: set[str] = set()
    for one in _separate(context):
        if one.image.opaque:
            continue
        texts = test_texts(context, context.test_folders(one.step))
        carried = _carried(one.step)
        names = {posixpath.basename(path) for text in texts.values() for path in _PATH.findall(text)}
        names.update(name for text in texts.values() for name in _NAME.findall(text))
        for path, (file, line) in required_paths(texts, set(islice(names, _MAX_NAMES))).items():
            if path in seen or _SYSTEM.fullmatch(path) or _is_within(path, carried):
                continue
            seen.add(path)
            if one.image.has(path) is False:
                message = f"{path} is read, which neither `artifacts` nor the verifier's image brings"
                yield Place(file, message, line)


def _carried(step: Step) -> Sequence[str]:
    return [_PUBLISHED, *(posixpath.normpath(artifact.source) for artifact in step.artifacts)]


def _is_within(path: str, folders: Sequence[str]) -> bool:
    """Whether a path is one of some paths, below one, or around one."""
    return any(f"{path}/".startswith(f"{one}/") or f"{one}/".startswith(f"{path}/") for one in folders)


@check(
    "separate-nothing-carried",
    severity=Severity.WARNING,
    family="separate",
    explains="A separate verifier sees nothing of the agent's work but `artifacts` and /logs/artifacts.",
    fix="list what the agent makes under `artifacts` in task.toml",
)
def nothing_carried(context: CheckContext) -> Iterator[Place]:
    """Look for separate verifiers to which nothing is carried, where nothing mentions /logs/artifacts either."""
    for one in _separate(context):
        if one.step.artifacts or one.step.collect:
            continue
        tests = test_texts(context, context.test_folders(one.step))
        texts = [*tests.values(), *(source.text for source in instructions(context))]
        if not any(_PUBLISHED in text or "ARTIFACT" in text for text in texts):
            line = Lines(context.task.source).of(("verifier",))
            yield Place(TASK_TOML, "nothing of the agent's work is carried to the separate verifier", line)
            return
