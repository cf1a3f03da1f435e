"""Writing a squashfs image out of a stream of tar, by squashfs-tools 4.5 or newer."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from pytest_otval.core import Conclusion, OtvalUsageError

_OPTIONS = ("-comp", "zstd", "-all-root", "-root-mode", "755", "-no-xattrs", "-mkfs-time", "0", "-all-time", "0")
_QUIET = ("-no-progress", "-quiet")


@contextmanager
def squashing(target: Path) -> Iterator[BinaryIO]:
    """Give a stream to write a tar archive to; at the end ``target`` is its squashfs, with no owners and no times.

    Raises Conclusion ``missing-tool``; OtvalUsageError where mksquashfs is too old, or fails.
    """
    program = shutil.which("mksquashfs")
    if program is None:
        raise Conclusion("missing-tool", "mksquashfs is not on PATH: install squashfs-tools")
    # mksquashfs refuses to be told times twice.
    environment = {name: value for name, value in os.environ.items() if name != "SOURCE_DATE_EPOCH"}
    argv = [program, "-", str(target), "-tar", *_OPTIONS, *_QUIET]
    with tempfile.TemporaryFile() as words:
        process = subprocess.Popen(
            argv, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=words, env=environment
        )
        assert process.stdin is not None
        try:
            yield cast("BinaryIO", process.stdin)
        except BrokenPipeError:
            # It has ended, and its last words say why.
            pass
        except BaseException:
            process.kill()
            raise
        finally:
            process.stdin.close()
            status = process.wait()
        if status != 0:
            words.seek(0)
            lines = words.read().decode(errors="replace").strip().splitlines()
            said = lines[-1] if lines else f"status {status}"
            raise OtvalUsageError(f"mksquashfs failed; it must be of version 4.5 or newer: {said}")
