"""libfaketime: where it is, whether it is sound, and how programs are told to use it.

Version 0.9.10, Debian 12's, makes Python 3.11 and later fail or hang when they wait for anything, so a library is
tried before it is used. (https://github.com/wolfcw/libfaketime, issues 390 and 426.)
"""

from __future__ import annotations

import functools
import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from pytest_otval.core import Conclusion

REMEDY = "pip install 'pytest-otval[clock]', or install libfaketime 0.9.11 or later"

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_TRIED = 86400
_TRY_SECONDS = 10
_TRY = "import threading, time; time.sleep(0.01); threading.Event().wait(0.01); print(int(time.time()))"
_FOLDERS = ("/usr/lib/*-linux-gnu*/faketime", "/usr/lib64/faketime", "/usr/lib/faketime", "/usr/local/lib/faketime")


def seconds_of(shift: str) -> int:
    """Return the seconds of a time span as ``400d`` or ``-12h``; 0 for an empty one."""
    return int(shift[:-1]) * _UNITS[shift[-1]] if shift else 0


def clock_variables(shift: int) -> dict[str, str]:
    """Return what libfaketime reads, for a shift in seconds.

    The monotonic clock stays as it is: limits and waits go by it. Each process remembers for itself, since a process
    of another user must not open what the first one shares.
    """
    return {
        "FAKETIME": f"{shift:+d}",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "FAKETIME_FLSHM": "1",
        "FAKETIME_DISABLE_SHM": "1",
    }


@functools.cache
def clock_library() -> Path:
    """Return a libfaketime that works on this machine. Raises Conclusion ``missing-tool``."""
    unsound = ""
    for path in _candidates():
        if path.is_file():
            if _is_sound(path):
                return path
            unsound = unsound or f"{path} breaks programs that wait"
    raise Conclusion("missing-tool", f"{unsound or 'there is no libfaketime'}: {REMEDY}")


def _candidates() -> Iterator[Path]:
    """The library of the PyPI package comes first: it is newer, and its old symbols load in old images too."""
    package = importlib.util.find_spec("libfaketime")
    if package is not None and package.origin:
        yield Path(package.origin).parent / "vendor" / "libfaketime" / "src" / "libfaketime.so.1"
    for folder in _FOLDERS:
        yield from sorted(Path("/").glob(f"{folder[1:]}/libfaketimeMT.so.1"))


def _is_sound(library: Path) -> bool:
    env = {**os.environ, "LD_PRELOAD": str(library), **clock_variables(_TRIED)}
    argv = [sys.executable, "-I", "-S", "-c", _TRY]
    try:
        done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False, timeout=_TRY_SECONDS)
    except subprocess.TimeoutExpired:
        return False
    told = done.stdout.strip()
    return done.returncode == 0 and told.isdigit() and abs(int(told) - time.time() - _TRIED) <= _TRY_SECONDS
