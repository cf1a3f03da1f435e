"""Which files of a task the agent's image ends up with: what COPY and ADD take, less what a later RUN removes."""

from __future__ import annotations

import fnmatch
import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from pytest_otval.checks.context import CheckContext
from pytest_otval.checks.docker_runs import UNKNOWN, Command, join
from pytest_otval.checks.docker_view import agent_image, expand
from pytest_otval.task.context import Context, Entry, has_wildcard
from pytest_otval.task.dockerfile import Instruction

_MAX_LOOKS = 2_000_000
"""Copied files times removals above which nothing is said: no Dockerfile anybody wrote."""
URL = re.compile(r"(?:https?|ftp|git|ssh)://|git@", re.IGNORECASE)
_ANSWER = re.compile(
    r"(?:ground[_-]?truth|golden|gold|answers?|answer[_-]?key|(?:expected|reference)[_-](?:output|result|answer)s?|expected"
    r"|hidden|solutions?)",
    re.IGNORECASE,
)
_VERB = re.compile(
    r"(?:check|write|verify|validate|run|get|make|gen|generate|submit|compute|test|parse)", re.IGNORECASE
)
_REMOVERS = ("rm", "shred", "unlink", "find")
_DOCUMENT = (".md", ".rst", ".html")
_FOLDERS = frozenset(("/", "/tmp", "/opt", "/root", "/home", "/srv", "/usr/local/bin", "/usr/bin", "/etc", "/var/tmp"))
"""Folders that every base image has."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """A file of the build context that a COPY takes."""

    path: str
    """Relative to the task folder."""
    place: str
    """Where it lies in the image; a NUL character alone where that is not known."""
    line: int
    """Of the instruction."""
    executable: bool
    removed: bool
    """A later RUN removes it again."""


def local_sources(instruction: Instruction) -> Sequence[str]:
    """Return the sources that come from the build context and are known without expanding variables."""
    if instruction.kind not in ("COPY", "ADD") or any(flag.startswith("--from") for flag in instruction.flags):
        return ()
    words = [word.strip("\"'") if instruction.shell_form else word for word in instruction.args[:-1]]
    inline = {heredoc.name for heredoc in instruction.heredocs}
    return [
        word
        for word in words
        if "$" not in word and not URL.match(word) and not (word.startswith("<<") and inline) and "\\" not in word
    ]


@lru_cache(maxsize=2)
def copied(context: CheckContext) -> tuple[Delivered, ...]:
    """Return each file of environment/ that the Dockerfile of the agent's image copies into it, removed or not."""
    image = agent_image(context)
    if image is None or image.build is None:
        return ()
    folders = set(_FOLDERS)
    found: dict[tuple[str, str], Delivered] = {}
    looks = 0
    for instruction in image.final:
        folder = image.folders[instruction.line]
        if instruction.kind == "WORKDIR":
            folders |= _parents(folder)
        elif instruction.kind in ("COPY", "ADD"):
            for source in local_sources(instruction):
                for one in _files(image.build, instruction, source, folder, folders):
                    found[one.path, one.place] = one
        elif (run := image.runs.get(instruction.line)) is not None:
            for command in run.commands:
                if command.name == "mkdir":
                    folders.update(*(_parents(join(command.folder, word)) for word in command.words[1:]))
                looks += len(found) * len(command.words) if command.name in _REMOVERS else 0
                if looks > _MAX_LOOKS:
                    return ()
                _remove(found, command)
    return tuple(found.values())


def delivered(context: CheckContext) -> Iterator[Delivered]:
    """Yield each file that a COPY brings into the agent's image and that stays there."""
    return (one for one in copied(context) if not one.removed)


def names_answer(path: str) -> bool:
    """Whether a file's name says that it holds what is to be found out, not that it does something with it."""
    stem, suffix = posixpath.splitext(posixpath.basename(path))
    words = [word for word in re.split(r"[._\s-]+", stem + suffix) if word]
    if not words or _VERB.fullmatch(words[0]) or suffix.lower() in _DOCUMENT:
        return False
    whole = {stem, *words, *("_".join(pair) for pair in pairwise(words))}
    return any(_ANSWER.fullmatch(word) for word in whole)


def _files(
    build: Context, instruction: Instruction, source: str, folder: str, folders: set[str]
) -> Iterator[Delivered]:
    target = expand(instruction.args[-1], {}) if instruction.shell_form else instruction.args[-1]
    place = join(folder, target)
    many = len(instruction.args) > 2 or has_wildcard(source) or target.endswith(("/", "/.")) or target == "."
    chmod = next((flag.partition("=")[2] for flag in instruction.flags if flag.startswith("--chmod")), None)

    def one(entry: Entry, where: str) -> Delivered:
        runs = entry.executable if chmod is None else not re.fullmatch(r"0?[0246]{3}", chmod)
        return Delivered(f"environment/{entry.path}", where, instruction.line, runs, False)

    for entry in _matches(build, source):
        if entry.kind == "folder":
            for below, inner in build.below(entry):
                if inner.kind == "file":
                    yield one(inner, join(place, below))
            folders |= _parents(place)
        elif entry.kind == "file":
            inside = many or place in folders
            yield one(entry, join(place, posixpath.basename(entry.path)) if inside else place)
            folders |= _parents(place if inside else posixpath.dirname(place))


def _matches(build: Context, source: str) -> Iterator[Entry]:
    try:
        found = build.match(source) if has_wildcard(source) else [build.find(source)]
    except ValueError:
        return
    yield from (entry for entry in found if entry is not None)


def _parents(folder: str) -> set[str]:
    if UNKNOWN in folder:
        return set()
    parts = folder.strip("/").split("/")
    return {"/" + "/".join(parts[:count]) for count in range(len(parts) + 1)}


def _remove(found: dict[tuple[str, str], Delivered], command: Command) -> None:
    """Mark what ``rm``, ``shred`` and ``find -delete`` take away; where a path is not known, its name decides."""
    words = [word for word in command.words[1:] if not word.startswith("-")]
    if command.name not in _REMOVERS or not found:
        return
    if command.name == "find" and not {"-delete", "rm"} & set(command.words):
        return
    targets = [join(command.folder, word) if not word.startswith("/") else word.rstrip("/") for word in words]
    for key, one in found.items():
        if any(_takes(target, word, one.place) for target, word in zip(targets, words, strict=True)):
            found[key] = Delivered(one.path, one.place, one.line, one.executable, True)


def _takes(target: str, word: str, place: str) -> bool:
    name = posixpath.basename(word)
    if UNKNOWN in target or UNKNOWN in place:
        return bool(name) and fnmatch.fnmatchcase(posixpath.basename(place), name)
    if place == target or place.startswith(f"{target}/"):
        return True
    return any(sign in target for sign in "*?[") and any(
        fnmatch.fnmatchcase(above, target) for above in _parents(place)
    )
