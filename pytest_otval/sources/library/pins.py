"""Patches that fix versions: of base images, and of Python packages."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from pytest_otval.checks.context import CheckContext
from pytest_otval.checks.docker_view import definitions
from pytest_otval.checks.shell_commands import unwrapped
from pytest_otval.checks.verify_scripts import verifier_scripts
from pytest_otval.harden.tree import UNKNOWN, Command, Word
from pytest_otval.sources.dockerfiles import DockerfileEdit
from pytest_otval.sources.editor import PatchError, TaskEditor
from pytest_otval.sources.patches import Patch
from pytest_otval.sources.scripts import ScriptEdit
from pytest_otval.task.dockerfile import Instruction


def pinned_bases(digests: Mapping[str, str]) -> Patch:
    """Base images that are named without a version, by names that stay: ``{"ubuntu": "ubuntu:24.04@sha256:..."}``.

    Of FROM, ``COPY --from`` and docker_image.
    """

    def edited(task: TaskEditor, path: str) -> DockerfileEdit:
        file = DockerfileEdit(task, path)
        stages = {one.args[2].lower() for one in file.file if one.kind == "FROM" and len(one.args) == 3}
        for instruction in file.file:
            name = _image_of(instruction)
            if name in digests and name not in stages:
                start, end = file.span(instruction)
                found = re.search(rf"(?<![\w./:@-]){re.escape(name)}(?![\w./:@-])".encode(), file.source[start:end])
                assert found is not None, "the parser has it from there"
                file.edits.replace(start + found.start(), start + found.end(), digests[name])
        return file

    def names_image(task: TaskEditor) -> str:
        environment = task.settings().get("environment")
        name = environment.get("docker_image") if isinstance(environment, dict) else None
        return name if isinstance(name, str) and name in digests else ""

    def change(task: TaskEditor) -> None:
        for path in _dockerfiles(task):
            if (file := edited(task, path)).edits.made:
                file.save()
        if name := names_image(task):
            with task.toml() as document:
                document["environment"]["docker_image"] = digests[name]

    def needed(task: TaskEditor) -> bool:
        return bool(names_image(task)) or any(edited(task, path).edits.made for path in _dockerfiles(task))

    return Patch("pinned-bases", "docker-base-unpinned", change, needed)


def _image_of(instruction: Instruction) -> str:
    """Return the image that a FROM or COPY takes; an empty text for others."""
    if instruction.kind == "FROM":
        return instruction.args[0]
    flags = (flag for flag in instruction.flags if instruction.kind == "COPY" and flag.startswith("--from="))
    return next(flags, "").removeprefix("--from=")


def _dockerfiles(task: TaskEditor) -> Iterator[str]:
    """Yield the task's Dockerfiles that can be edited."""
    for one in definitions(CheckContext(task.task)):
        try:
            DockerfileEdit(task, one.path)
        except PatchError:
            continue
        yield one.path


def pinned_packages(versions: Mapping[str, str]) -> Patch:
    """Python packages that Dockerfiles and test scripts install in whatever version there is, by these versions.

    ``versions`` come from the author, from a lock file, or from an image that was built, whose packages
    ``image show`` tells. What it does not name stays as it is, as apt's packages do: a mirror has one version of each.
    """
    wanted: dict[str, str] = {canonicalize_name(name): version for name, version in versions.items()}

    def scripts(task: TaskEditor) -> Iterator[ScriptEdit]:
        for path in dict.fromkeys(one.path for one in verifier_scripts(CheckContext(task.task))):
            try:
                yield ScriptEdit(task, path)
            except PatchError:
                continue

    def edited(task: TaskEditor) -> Iterator[DockerfileEdit | ScriptEdit]:
        for path in _dockerfiles(task):
            file = DockerfileEdit(task, path)
            for _, command in file.run_commands():
                _pin(file, command, wanted)
            yield file
        for script in scripts(task):
            for command in script.commands:
                _pin(script, command, wanted)
            yield script

    def change(task: TaskEditor) -> None:
        for one in edited(task):
            if one.edits.made:
                one.save()

    return Patch(
        "pinned-packages",
        "docker-packages-unpinned",
        change,
        lambda task: any(one.edits.made for one in edited(task)),
        inputs=lambda: repr(sorted(wanted.items())),
    )


def _pin(edit: DockerfileEdit | ScriptEdit, command: Command, versions: Mapping[str, str]) -> None:
    for word in requirements(command):
        pinned = _pinned(word.text, versions)
        if pinned is not None:
            quote = word.source[:1] if word.source[:1] in "'\"" else ""
            edit.edits.replace(word.start, word.end, f"{quote}{pinned}{quote}")


def _pinned(text: str, versions: Mapping[str, str]) -> str | None:
    """Return a requirement with its exact version; None for one that has one, or that is not to be fixed."""
    try:
        one = Requirement(text)
    except InvalidRequirement:
        return None
    version = versions.get(canonicalize_name(one.name))
    if version is None or one.url or any(bound.operator in ("==", "===", "~=") for bound in one.specifier):
        return None
    if not one.specifier.contains(version, prereleases=True):
        raise PatchError(f"{text} does not allow {one.name} {version}")
    extras = f"[{','.join(sorted(one.extras))}]" if one.extras else ""
    return f"{one.name}{extras}=={version}" + (f"; {one.marker}" if one.marker else "")


_PIP = re.compile(r"pip[\d.]*")
_PYTHON = re.compile(r"python[\d.]*")
_WITH = frozenset(("-w", "--with", "--from"))
_VALUES = frozenset(
    (
        *("-r", "--requirement", "-c", "--constraint", "-e", "--editable", "-i", "--index-url", "--extra-index-url"),
        *("-f", "--find-links", "-t", "--target", "--prefix", "--root", "--python", "-p", "--platform", "--src"),
        *("--python-version", "--trusted-host", "--timeout", "--retries", "--no-binary", "--only-binary", "--log"),
        *("--progress-bar", "--cache-dir", "--build-option", "--config-settings", "--upgrade-strategy", "--index"),
    )
)
"""Options of pip and uv that have a value of their own."""


def installs(command: Command) -> bool:
    """Whether a command is an installation by pip, or by uv as pip."""
    return _behind_install(unwrapped(command.texts)) > 0


def requirements(command: Command) -> Iterator[Word]:
    """Yield the words of a command that say which Python packages pip or uv is to bring."""
    words = command.words[len(command.words) - len(unwrapped(command.texts)) :]
    uv = _behind_uv(command.texts)
    if uv:
        pairs = zip(command.words[uv:], command.words[uv + 1 :], strict=False)
        yield from (word for option, word in pairs if option.text in _WITH and UNKNOWN not in word.text)
    elif at := _behind_install([word.text for word in words]):
        skip = False
        for word in words[at:]:
            if not skip and not word.text.startswith("-") and UNKNOWN not in word.text and "/" not in word.text:
                yield word
            skip = not skip and word.text in _VALUES


def _behind_uv(texts: Sequence[str]) -> int:
    """Return behind how many words stand the options of ``uvx``, ``uv run`` or ``uv tool run``; 0 for others."""
    for start in (("uvx",), ("uv", "run"), ("uv", "tool", "run")):
        for at in range(min(len(texts), _MOST_WRAPPERS)):
            if tuple(texts[at : at + len(start)]) == start:
                return at + len(start)
    return 0


_MOST_WRAPPERS = 8
"""Words of what only starts a command: ``timeout 60``, ``env A=1``."""


def _behind_install(texts: Sequence[str]) -> int:
    """Return behind how many words stands what pip or ``uv add`` is to install; 0 for other commands."""
    names = [posixpath.basename(texts[0])] if texts else []
    at = 2 if names and _PYTHON.fullmatch(names[0]) and texts[1:2] == ["-m"] else 1 if names == ["uv"] else 0
    if names == ["uv"] and texts[1:2] == ["add"]:
        return 2
    is_pip = len(texts) > at and (_PIP.fullmatch(posixpath.basename(texts[at])) or texts[at] == "pipx")
    return at + 2 if is_pip and texts[at + 1 : at + 2] == ["install"] else 0
