"""Entries of the task folder that cannot be handed to a container as they are."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from pytest_otval.checks.context import CheckContext
from pytest_otval.checks.registry import Place, check
from pytest_otval.checks.said import instructions
from pytest_otval.core import Severity

_LFS_POINTER = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\n(?:[a-z0-9.-]+ .*\n)*oid sha256:[0-9a-f]{64}\n"
)
_SPEAKS_OF_LFS = re.compile(r"\bgit[- ]?lfs\b", re.IGNORECASE)
_LFS_MAX = 1024
"""Bytes of the longest pointer file, by the specification of Git LFS."""


@check(
    "entries-link-escape",
    severity=Severity.ERROR,
    family="entries",
    explains="Harbor refuses a task with a link out of its folder; elsewhere the link would show another file.",
    fix="put a copy of the file in its place",
)
def link_escape(context: CheckContext) -> Iterator[Place]:
    """Look for links whose target lies outside the task folder."""
    for entry in context.tree.entries.values():
        if entry.kind == "link" and context.tree.escapes(entry):
            yield Place(entry.path, f"a link out of the task folder, to {entry.target}")


@check(
    "entries-link-dangling",
    severity=Severity.WARNING,
    family="entries",
    explains="A link that leads nowhere, or in a circle, is mostly a file that was forgotten.",
    fix="add the file that it should lead to, or remove the link",
)
def link_dangling(context: CheckContext) -> Iterator[Place]:
    """Look for links inside the task that lead to nothing."""
    for entry in context.tree.entries.values():
        inside = entry.kind == "link" and not context.tree.escapes(entry)
        if inside and context.tree.resolve(entry.path) is None:
            yield Place(entry.path, f"a link to {entry.target}, which leads nowhere")


@check(
    "entries-special",
    severity=Severity.ERROR,
    family="entries",
    explains="A FIFO, socket or device cannot be copied: tools skip it, fail or wait for ever.",
    fix="remove it, and make it in the Dockerfile or in a script where the task needs one",
)
def special(context: CheckContext) -> Iterator[Place]:
    """Look for what is neither file, folder nor link."""
    for entry in context.tree.entries.values():
        if entry.kind == "special":
            yield Place(entry.path, "a FIFO, socket or device")


@check(
    "entries-unreadable",
    severity=Severity.ERROR,
    family="entries",
    explains="What cannot be read cannot be copied into a container.",
    fix="let its owner read it: chmod u+r, and u+x for a folder",
)
def unreadable(context: CheckContext) -> Iterator[Place]:
    """Look for folders that cannot be listed and scripts that cannot be read."""
    for entry in context.tree.entries.values():
        if entry.kind == "unreadable":
            yield Place(entry.path, "it cannot be read")
    for script in context.scripts():
        if context.source(script.path) is None:
            yield Place(script.path, "it cannot be read")


@check(
    "entries-too-many",
    severity=Severity.WARNING,
    family="entries",
    explains="Each run copies every file of a task, and checks look at a bounded number of them.",
    fix="pack the files into an archive that the Dockerfile unpacks",
)
def too_many(context: CheckContext) -> Iterator[Place]:
    """Say where the task is larger than checks look at."""
    if not context.tree.complete:
        yield Place("", f"only the first {len(context.tree.entries)} files and folders were checked")


@check(
    "entries-case-collision",
    severity=Severity.WARNING,
    family="entries",
    explains="Where case does not matter (macOS, Windows) only one of the two files survives a checkout.",
    fix="rename one of them",
)
def case_collision(context: CheckContext) -> Iterator[Place]:
    """Look for names that differ only by case or Unicode form."""
    first: dict[str, str] = {}
    for path in context.tree.entries:
        key = unicodedata.normalize("NFC", path).casefold()
        other = first.setdefault(key, path)
        if other != path:
            yield Place(path, f"differs from {other} only by case")


@check(
    "entries-lfs-pointer",
    severity=Severity.ERROR,
    family="entries",
    explains="The file holds a pointer of Git LFS in place of its content.",
    fix="run `git lfs pull` and pack the task again",
)
def lfs_pointer(context: CheckContext) -> Iterator[Place]:
    """Look for files that are Git LFS pointers, unless the task is about these."""
    if any(_SPEAKS_OF_LFS.search(source.text) for source in instructions(context)):
        return
    for entry in context.tree.entries.values():
        if entry.kind != "file" or not 100 < entry.size < _LFS_MAX:
            continue
        source = context.source(entry.path)
        if source is not None and _LFS_POINTER.match(source.raw):
            yield Place(entry.path, "a Git LFS pointer, not the content", 1)
