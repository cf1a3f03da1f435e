"""Packing a stream of tar into a squashfs."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from pytest_otval.core import Conclusion

FOLDERS = ("proc", "sys", "dev", "etc")
"""What a container runtime mounts on or into. They are root's, mode 755, whatever the archive says of them."""

_END_SECONDS = 0.5


class PackError(Exception):
    """mksquashfs failed; the text is its last words."""


@contextmanager
def packing(target: Path, all_root: bool, folders: Sequence[str] = FOLDERS) -> Iterator[int]:
    """Give the descriptor to which a tar archive is written; at the end ``target`` is its squashfs.

    ``folders`` are in it whatever the archive holds. ``all_root`` makes root the owner of everything: where uids are
    not mapped, a file of another owner could not be used. Raises PackError, or Conclusion ``missing-tool``. ``target``
    is worthless where the archive was cut short.
    """
    program = required("mksquashfs", "squashfs-tools")
    argv = [program, "-", str(target), "-tar", "-comp", "zstd", "-Xcompression-level", "3", "-no-progress", "-quiet"]
    argv += ["-root-mode", "755"]
    if all_root:
        argv.append("-all-root")
    elif os.getuid() != 0:
        # mksquashfs 4.5 gives the root folder to whoever runs it, -root-uid or not, where it reads a tar archive.
        argv = ["unshare", "--map-root-user", "--", *argv]
    with tempfile.TemporaryFile() as words:
        reader, writer = os.pipe()
        process = subprocess.Popen(argv, stdin=reader, stdout=subprocess.DEVNULL, stderr=words)
        rest = threading.Thread(target=_read_rest, args=(process, reader), daemon=True)
        rest.start()
        try:
            # mksquashfs 4.5 adds nothing to a tar archive by itself, so they stand at its beginning.
            os.write(writer, b"".join(_folder(name) for name in folders))
            yield writer
        except BaseException:
            # Where mksquashfs ended first, the error of its writer is but a consequence.
            with suppress(subprocess.TimeoutExpired):
                process.wait(_END_SECONDS)
            if not process.returncode:
                process.kill()
                raise
        finally:
            os.close(writer)
            status = process.wait()
            rest.join()
        if status != 0:
            words.seek(0)
            lines = words.read().decode(errors="replace").strip().splitlines()
            raise PackError(lines[-1] if lines else f"mksquashfs ended with status {status}")


def _read_rest(process: subprocess.Popen[bytes], reader: int) -> None:
    """Read what follows the archive: mksquashfs ends with the last entry, and tar still has padding to write."""
    try:
        if process.wait() == 0:
            while os.read(reader, 65536):
                pass
    finally:
        os.close(reader)


def _folder(name: str) -> bytes:
    header = tarfile.TarInfo(name)
    header.type, header.mode = tarfile.DIRTYPE, 0o755
    return header.tobuf(tarfile.GNU_FORMAT)


def required(program: str, package: str) -> str:
    """Return the path of a program of the host. Raises Conclusion ``missing-tool``."""
    found = shutil.which(program)
    if found is None:
        raise Conclusion("missing-tool", f"{program} is not on PATH: install {package}, or ask an administrator for it")
    return found
