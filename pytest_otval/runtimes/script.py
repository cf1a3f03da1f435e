"""What the scripts of a task say about runtimes: which they ask for, and what installs it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pytest_otval.core import NAME, Conclusion, printable
from pytest_otval.runtimes.record import TASK_JSON, VERIFIER_JSON
from pytest_otval.task.bash import bash_root, commands
from pytest_otval.task.load import Step, Task
from pytest_otval.task.reading import NotReadableError, is_folder, is_regular, open_regular, read_regular

HELPER = "ot-runtime.sh"
_CALL = "ot_runtime"
_MAX_SCRIPT_BYTES = 1024 * 1024
_MAX_NAMED_BYTES = 1024 * 1024 * 1024
_STATEMENTS = ("list", "if_statement", "command")


@dataclass(frozen=True, slots=True)
class Asking:
    """A script that asks for a runtime."""

    folder: Path
    """setup_files/ or tests/, in the task."""
    script: str
    """Its name in ``folder``."""
    json: Path
    """The file that names the runtime, or will."""
    seen_at: str
    """Where a container sees ``folder``."""
    name: str
    """Of the runtime."""
    statement: bytes
    """What installs it."""

    @property
    def definition(self) -> str:
        """sha256 of the statement, and of the files of ``folder`` that it names, at the top or below a folder there.

        Links and special files are not read. Raises Conclusion ``bad-task`` where the files are too large, or cannot be
        read.
        """
        digest, left = hashlib.sha256(self.statement), _MAX_NAMED_BYTES
        where = f"{self.folder.name}/{self.script}: what installs {self.name} names files"
        try:
            for path in self._named():
                with os.fdopen(open_regular(path), "rb") as file:
                    left -= os.fstat(file.fileno()).st_size
                    if left < 0:
                        words = f"{where} of more than {_MAX_NAMED_BYTES >> 20} MiB: name fewer of them"
                        raise Conclusion("bad-task", words)
                    name = path.relative_to(self.folder).as_posix().encode(errors="surrogateescape")
                    digest.update(b"\0" + name + b"\0" + hashlib.file_digest(file, "sha256").digest())
        except (OSError, NotReadableError, RecursionError) as error:
            raise Conclusion("bad-task", f"{where} that cannot be read: {printable(str(error))[:200]}") from None
        return digest.hexdigest()

    def _named(self) -> Iterator[Path]:
        for top in sorted(self.folder.iterdir()):
            if top.name.encode(errors="surrogateescape") in self.statement:
                below = sorted(top.rglob("*")) if is_folder(top) else [top]
                yield from filter(is_regular, below)


def asking_of_agent(task: Task) -> Asking | None:
    """Return what setup_files/setup.sh asks for. Raises Conclusion ``bad-task``."""
    return _asking(task.path / "setup_files", ("setup.sh",), TASK_JSON, "/setup_files")


def asking_of_verifier(step: Step) -> Asking | None:
    """Return what tests/setup.sh asks for, else tests/test.sh. Raises Conclusion ``bad-task``."""
    for folder in (step.tests, step.shared_tests):
        found = _asking(folder, ("setup.sh", "test.sh"), VERIFIER_JSON, "/tests") if folder is not None else None
        if found is not None:
            return found
    return None


def _asking(folder: Path, scripts: tuple[str, ...], json: str, seen_at: str) -> Asking | None:
    for script in scripts:
        source = _source(folder / script)
        if HELPER.encode() not in source:
            continue
        where = f"{folder.name}/{script}"
        name, statement = _call(source, where)
        return Asking(folder, script, folder / json, seen_at, name, statement)
    return None


def _source(path: Path) -> bytes:
    try:
        return read_regular(path, _MAX_SCRIPT_BYTES)
    except (NotReadableError, FileNotFoundError):
        return b""


def _call(source: bytes, where: str) -> tuple[str, bytes]:
    """Return name and whole statement of the call of ``ot_runtime``."""
    names, statement = set(), b""
    for node in commands(bash_root(source)):
        words = [child for child in node.children if child.is_named]
        if len(words) < 2 or words[0].text != _CALL.encode():
            continue
        names.add((words[1].text or b"").decode(errors="replace").strip("'\""))
        above = node
        while above.parent is not None and above.parent.type in _STATEMENTS:
            above = above.parent
        statement = statement or (above.text or b"")
    if len(names) != 1 or not all(NAME.fullmatch(name) for name in names):
        found = ", ".join(sorted(names)) or "none"
        wanted = f"{where} sources {HELPER}, so it has to ask for one runtime by a plain name: `{_CALL} NAME || ...`"
        raise Conclusion("bad-task", f"{wanted}; found: {found}")
    return names.pop(), statement
