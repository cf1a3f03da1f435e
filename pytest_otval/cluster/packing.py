"""What jobs take to their nodes as files with checksums: the Python environment as one archive, tasks as another.

A node reads thousands of small files from shared storage slowly, and may not see a checkout at all. The base
interpreter is not packed: it has to be on the nodes, where submission found it.
"""

from __future__ import annotations

import gzip
import hashlib
import importlib.metadata
import io
import json
import os
import sys
import sysconfig
import tarfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import pytest_otval
from pytest_otval.core import OtvalUsageError
from pytest_otval.images.bases import file_digest
from pytest_otval.images.locks import half_name, locked, write_whole
from pytest_otval.task.pack import pack
from pytest_otval.task.packed.forms import FILE_OF, Form
from pytest_otval.task.source import FolderSource, source_of

PACKAGE = "pytest-otval"
FORMAT = 1
"""Of the archive: another one is packed anew."""

UNUSED_SECONDS = 30 * 86400
"""An archive that no submission asked for so long goes when another one is made; jobs of runs do not last as long."""

_LEVEL = 1
"""Of gzip: each job unpacks, and higher levels make it little smaller."""


@dataclass(frozen=True, slots=True)
class Packed:
    """A file that jobs copy."""

    path: str
    sha256: str
    bytes: int


def base_interpreter() -> Path:
    """Return the interpreter behind this environment, without links: what nodes need to have at the same place."""
    return Path(os.path.realpath(getattr(sys, "_base_executable", sys.executable)))


def pack_environment(folder: Path, modules: Sequence[str] = ()) -> Packed:
    """Return the archive of this Python environment below ``folder``, made once for each content.

    It holds what our package and installed pytest plugins need, our package itself also where it is installed in
    editable mode, and ``modules``: those that ``-p`` names. Its top has ``bin/python``, ``bin/pytest`` and ``lib``.
    Raises OtvalUsageError.
    """
    files = dict(_files(modules))
    key = _key(files)
    archive, record = folder / f"{key}.tar.gz", folder / f"{key}.json"
    folder.mkdir(parents=True, exist_ok=True)
    with locked(archive.with_suffix(".lock")):
        known = _read(record)
        if known is None or not archive.is_file() or archive.stat().st_size != known.bytes:
            half = half_name(archive)
            try:
                _write(half, files)
                known = Packed(str(archive), file_digest(half), half.stat().st_size)
                half.replace(archive)
            finally:
                half.unlink(missing_ok=True)
            write_whole(record, json.dumps(asdict(known)).encode())
            _remove_unused(folder)
        os.utime(record)
    return known


def _remove_unused(folder: Path) -> None:
    """Remove archives that no run asked for in a long time: each change of a package makes another one."""
    for record in folder.glob("*.json"):
        with suppress(OSError):
            if time.time() - record.stat().st_mtime > UNUSED_SECONDS:
                record.unlink()
                record.with_suffix(".tar.gz").unlink(missing_ok=True)


def _read(record: Path) -> Packed | None:
    try:
        return Packed(**json.loads(record.read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def _files(modules: Sequence[str]) -> Iterator[tuple[str, Path]]:
    """Yield the place of each file in the archive, and the file."""
    site = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
    purelib = Path(sysconfig.get_path("purelib"))
    for distribution in _needed():
        for entry in distribution.files or ():
            path = Path(os.path.normpath(str(distribution.locate_file(entry))))
            if not path.is_file():
                continue
            if path.is_relative_to(purelib) and not path.name.startswith("__editable__"):
                yield f"{site}/{path.relative_to(purelib)}", path
            elif path.parent == Path(sysconfig.get_path("scripts")):
                yield f"bin/{path.name}", path
    for name in (pytest_otval.__name__, *modules):
        for path, below in _module_files(name):
            yield f"{site}/{below}", path


def _needed() -> list[importlib.metadata.Distribution]:
    """Return our distribution, those of pytest plugins, and all they require, of extras those that are installed."""
    installed = {canonicalize_name(one.metadata["Name"]): one for one in importlib.metadata.distributions()}
    plugins = {point.dist.name for point in importlib.metadata.entry_points(group="pytest11") if point.dist}
    pending = [canonicalize_name(name) for name in (PACKAGE, *sorted(plugins))]
    found: dict[str, importlib.metadata.Distribution] = {}
    while pending:
        name = pending.pop()
        if name in found or name not in installed:
            continue
        found[name] = installed[name]
        for text in installed[name].requires or ():
            requirement = Requirement(text)
            # Extras of ours are there where they are installed; what only selftests need is left out.
            extras = ("", "clock", "hub", "llm") if name == PACKAGE else ("",)
            if requirement.marker is None or any(requirement.marker.evaluate({"extra": one}) for one in extras):
                pending.append(canonicalize_name(requirement.name))
    return [found[name] for name in sorted(found)]


def _module_files(name: str) -> Iterator[tuple[Path, str]]:
    """Yield the source files of a module or package, and their places below site-packages. Raises OtvalUsageError."""
    module = sys.modules.get(name.partition(".")[0])
    file = getattr(module, "__file__", None)
    if file is None:
        raise OtvalUsageError(f"the plugin {name!r} has no file that jobs could take along: install it as a package")
    source = Path(file)
    if source.name != "__init__.py":
        yield source, source.name
        return
    for path in sorted(source.parent.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path, str(path.relative_to(source.parent.parent))


def _key(files: dict[str, Path]) -> str:
    """Return a digest over what the archive would hold, told by sizes and times of files."""
    digest = hashlib.sha256(f"{FORMAT} {base_interpreter()} {sys.version}".encode())
    for place, path in sorted(files.items()):
        facts = path.stat()
        digest.update(f"\n{place} {facts.st_size} {facts.st_mtime_ns}".encode())
    return digest.hexdigest()[:16]


def _write(target: Path, files: dict[str, Path]) -> None:
    base = base_interpreter()
    home = f"home = {base.parent}\ninclude-system-site-packages = false\nversion = {sys.version.split()[0]}\n"
    # As setup.sh writes it: pytest's own command would load what an ini file inside a task names.
    start = '#!/bin/sh\nexec "$(dirname -- "$0")/python" -P -m pytest_otval.glue.start "$@"\n'
    with (
        target.open("wb") as file,
        # Equal content is equal bytes: jobs of a run that was submitted before may still ask for them.
        gzip.GzipFile("", "wb", _LEVEL, file, mtime=0) as stream,
        tarfile.open(fileobj=stream, mode="w|") as archive,
    ):
        link = tarfile.TarInfo("bin/python")
        link.type, link.linkname = tarfile.SYMTYPE, str(base)
        archive.addfile(link)
        _add(archive, "pyvenv.cfg", home.encode(), 0o644)
        _add(archive, "bin/pytest", start.encode(), 0o755)
        for place, path in sorted(files.items()):
            if place in ("bin/python", "bin/pytest", "bin/py.test"):
                continue
            facts = path.stat()
            _add(archive, place, _relocatable(path), 0o755 if facts.st_mode & 0o100 else 0o644, int(facts.st_mtime))


def _relocatable(path: Path) -> bytes:
    """Return a file's content; a script that starts with this environment's Python starts with the one beside it."""
    content = path.read_bytes()
    first, _, rest = content.partition(b"\n")
    if not first.startswith(b"#!") or os.fsencode(str(Path(sys.prefix) / "bin" / "python")) not in first:
        return content
    # One text that is right both as shell, which reads the first line of it, and as Python, where it is a string.
    return b"""#!/bin/sh\n'''exec' "$(dirname -- "$0")/python" "$0" "$@"\n' '''\n""" + rest


def _add(archive: tarfile.TarFile, place: str, content: bytes, mode: int, mtime: int = 0) -> None:
    info = tarfile.TarInfo(place)
    info.size, info.mode, info.mtime = len(content), mode, mtime
    archive.addfile(info, io.BytesIO(content))


def pack_dataset(dataset: Path, tasks: Iterable[str], folder: Path) -> list[Packed]:
    """Return the files that hold a dataset for jobs: its dataset.toml, and its tasks packed.

    Folders of tasks are packed into ``folder``, exactly those that are asked for; packed files are taken as they are.
    Raises OtvalUsageError, Conclusion ``bad-task``.
    """
    source = source_of(dataset)
    if isinstance(source, FolderSource):
        pack(dataset, Form.TAR, folder, frozenset(tasks))
        files = [folder / FILE_OF[Form.TAR]]
        manifest = folder / "dataset.toml"
    else:
        files = sorted({source.anchor(task) for task in tasks})
        manifest = dataset / "dataset.toml"
    return [packed(path) for path in (manifest, *files) if path.is_file()]


def packed(path: Path) -> Packed:
    """Return a file as jobs copy it. Raises OtvalUsageError where it cannot be read."""
    try:
        return Packed(str(path), file_digest(path), path.stat().st_size)
    except OSError as error:
        raise OtvalUsageError(f"{path} cannot be read: {error.strerror}") from None
