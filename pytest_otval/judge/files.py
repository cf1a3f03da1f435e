"""What a judge is shown of a task: the files that Harbor's own judge sees."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pytest_otval.checks.files import DEFINITIONS
from pytest_otval.checks.tree import Entry, scan
from pytest_otval.judge.blocks import readable, readable_name
from pytest_otval.judge.cutting import Piece, fit, some_of
from pytest_otval.judge.material import Material
from pytest_otval.task.load import Task
from pytest_otval.task.reading import NotReadableError, read_regular

MOST_BYTES = 1024 * 1024
"""A larger file is told by name and size."""
MOST_BYTES_TOGETHER = 32 * 1024 * 1024
"""Files behind so many bytes, in the order in which they are shown, are told by name and size."""

_TOPS = ("task.toml", "instruction.md", "environment", "tests", "solution", "setup_files", "workdir")
_DEFINITIONS = tuple(f"environment/{name}" for name in DEFINITIONS)
_FIRST = frozenset(
    (*_TOPS[:2], *_DEFINITIONS, "tests/test.sh", "tests/Dockerfile", "solution/solve.sh", "setup_files/setup.sh")
)
_KINDS = {"link": "is a link", "special": "is no regular file", "unreadable": "cannot be read"}


def task_material(task: Task, characters: int) -> Material:
    """Return what is shown of a task with at most so many characters, blocks and names among them.

    Of a task that is too long, what a reader needs first is shown first: task.toml, instructions and the scripts that
    are always there, then the rest of tests/ and solution/, then that of environment/ and others (``cutting.fit``). A
    tenth is kept for the names of what is not shown: whatever is no regular file, no text or too large, and what found
    no place. Nothing but regular files is opened.
    """
    tree = scan(task.path)
    entries = sorted((entry for entry in tree.entries.values() if _is_shown(entry)), key=lambda entry: _key(entry.path))
    pieces, notes = _read(task.path, entries)
    fitted = fit(pieces, characters - characters // 10)
    notes += [f"{name}: there was no place for it" for name in fitted.dropped]
    notes += [f"{name}: is not shown as a whole" for name in fitted.cut]
    if not tree.complete:
        notes.append("the task has more files than anybody lists")
    return Material(tuple(fitted.documents), left_out=some_of(notes, characters // 10))


def _is_shown(entry: Entry) -> bool:
    return entry.kind != "folder" and _within(entry.path)[0] in _TOPS


def _within(path: str) -> Sequence[str]:
    """Return the parts of a path in the task, or in one of its steps."""
    parts = path.split("/")
    return parts[2:] if parts[0] == "steps" and len(parts) > 2 else parts


def _key(path: str) -> tuple[str, int, bool, str]:
    within = _within(path)
    step = path.split("/")[1] if within != path.split("/") else ""
    return step, _TOPS.index(within[0]), "/".join(within) not in _FIRST, path


def _rank(path: str) -> int:
    within = _within(path)
    if "/".join(within) in _FIRST:
        return 0
    return 1 if within[0] in ("tests", "solution") else 2


def _read(root: Path, entries: Sequence[Entry]) -> tuple[list[Piece], list[str]]:
    """Return the texts, and what is said of the others."""
    pieces, notes = [], []
    left = MOST_BYTES_TOGETHER
    for entry in entries:
        name = readable_name(entry.path)
        try:
            text = _text(root, entry, min(left, MOST_BYTES))
        except NotReadableError as error:
            notes.append(f"{name}: {error}")
        except OSError as error:
            notes.append(f"{name}: cannot be read: {error.strerror}")
        else:
            left -= len(text)
            pieces.append(Piece(name, (text,), _rank(entry.path)))
    return pieces, notes


def _text(root: Path, entry: Entry, most: int) -> str:
    """Return what a file says; raise NotReadableError for what is no text, or has more than ``most`` bytes."""
    if entry.kind != "file":
        raise NotReadableError(_KINDS[entry.kind])
    if entry.size > most:
        raise NotReadableError(f"has {entry.size} bytes, which are too many")
    data = read_regular(root / entry.path, most)
    if b"\0" in data:
        raise NotReadableError(f"has {len(data)} bytes, which are no text")
    return readable(data.decode(errors="backslashreplace"))
