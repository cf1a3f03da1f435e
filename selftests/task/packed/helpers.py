"""Packed datasets made by hand, as nobody's packer would."""

import gzip
import io
import stat
import tarfile
from collections.abc import Iterable
from pathlib import Path

import pyarrow
from pyarrow import parquet

from pytest_otval.core import Conclusion
from pytest_otval.task.packed.unpack import Entry, Kind


def member(name: str, data: bytes = b"", kind: bytes = tarfile.REGTYPE, target: str = "", mode: int = 0o644, size=None):
    """Return a tar header and the bytes behind it."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, target, mode
    info.size = len(data) if size is None else size
    return info, data


def tar(*members, pax: bool = False) -> bytes:
    """Return an archive with these members; a plain name is an empty file."""
    buffer = io.BytesIO()
    form = tarfile.PAX_FORMAT if pax else tarfile.GNU_FORMAT
    with tarfile.open(fileobj=buffer, mode="w", format=form, encoding="utf-8", errors="surrogateescape") as archive:
        for entry in members:
            info, data = member(entry) if isinstance(entry, str) else entry
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def zipped(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


def rows(file: Path, tasks: Iterable[tuple[str | None, bytes | None]], **options) -> Path:
    """Write a Parquet file with these rows."""
    names, archives = [], []
    for name, archive in tasks:
        names.append(name)
        archives.append(archive)
    file.parent.mkdir(parents=True, exist_ok=True)
    table = pyarrow.table({"path": pyarrow.array(names, "string"), "task_binary": pyarrow.array(archives, "binary")})
    parquet.write_table(table, file, **options)
    return file


def file(path: str | bytes, *chunks: bytes, executable: bool = False) -> Entry:
    return Entry(_raw(path), Kind.FILE, executable, content=lambda: iter(chunks))


def entry(path: str | bytes, kind: Kind, target: str = "") -> Entry:
    return Entry(_raw(path), kind, target=target.encode())


def _raw(path: str | bytes) -> bytes:
    return path.encode() if isinstance(path, str) else path


def tree(folder: Path) -> dict[str, str]:
    """Return what lies below a folder: kind, mode and content or target of each path."""
    found = {}
    for path in sorted(folder.rglob("*")):
        facts = path.lstat()
        kind = {stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "link", stat.S_IFIFO: "fifo"}[
            stat.S_IFMT(facts.st_mode)
        ]
        mode = "" if kind == "link" else f" {stat.S_IMODE(facts.st_mode):o}"
        rest = {"file": lambda p: " " + p.read_text("latin-1"), "link": lambda p: " " + str(p.readlink())}.get(kind)
        found[str(path.relative_to(folder))] = kind + mode + (rest(path) if rest else "")
    return found


def refusal(action, *args) -> str:
    """Return the headline with which a task is refused."""
    try:
        action(*args)
    except Conclusion as conclusion:
        assert conclusion.reason == "bad-task"
        assert conclusion.headline.isprintable()
        assert len(conclusion.headline) < 400
        return conclusion.headline
    raise AssertionError("not refused")
