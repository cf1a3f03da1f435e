"""What bash says of a script's syntax.

Starting a bash takes ten times as long as parsing a usual script, so one bash is kept and forks for each script. The
child reads ``set -n`` first, and from then on it only parses, as ``bash -n`` does: nothing of a script is executed.
"""

from __future__ import annotations

import atexit
import os
import re
import select
import signal
import subprocess
import threading
import time
from contextlib import suppress
from functools import cache, lru_cache

from pytest_otval.core import Conclusion

_SECONDS = 10
"""A megabyte of shell parses in well below a second."""
_TRIES = 2
"""The bash that was kept may be gone."""
_HEAD = b"set -n\n"
_SERVE = r"""while read -r; do said=$(. /proc/self/fd/%d 2>&1 </dev/null); printf '%%s\0%%s\0' "$?" "$said"; done"""
_ERROR = re.compile(r"^/proc/self/fd/\d+: line (\d+): (.*)$", re.MULTILINE)


@lru_cache(maxsize=512)
def shell_error(text: str) -> tuple[int | None, str] | None:
    """Return the line and message of the first syntax error of a bash script, or None, also where bash takes too long.

    Raises Conclusion ``missing-tool`` where there is no bash.
    """
    with _LOCK:
        answer = _bash(os.getpid()).parse(text)
    if answer is None or answer[0] == 0:
        return None
    told = _ERROR.search(answer[1])
    return (int(told[1]) - _HEAD.count(b"\n"), told[2]) if told else (None, "bash cannot parse it")


_LOCK = threading.Lock()


@cache
def _bash(_pid: int) -> _Bash:
    """Return the bash of a process: one that was forked must not talk to its parent's."""
    made = _Bash()
    atexit.register(made.stop)
    return made


def end_bash() -> None:
    """End this process's bash, if there is one; the next script starts another."""
    _bash(os.getpid()).stop()


class _Bash:
    """A bash that parses scripts, started when the first comes."""

    def __init__(self) -> None:
        self._owner = os.getpid()
        self._script = os.memfd_create("script")
        self._process: subprocess.Popen[bytes] | None = None

    def parse(self, text: str) -> tuple[int, str] | None:
        """Return the status and the messages that a script is given; None where there is no answer in time."""
        os.ftruncate(self._script, 0)
        with open(self._script, "r+b", closefd=False) as file:
            file.seek(0)
            file.write(_HEAD + text.encode())
        for _ in range(_TRIES):
            self._process = self._process or self._started()
            try:
                return _asked(self._process)
            except TimeoutError:
                self.stop()
                return None
            except (BrokenPipeError, EOFError):
                self.stop()
        return None

    def _started(self) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                ["bash", "--noprofile", "--norc", "-c", _SERVE % self._script],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                pass_fds=[self._script],
                # No BASH_ENV: bash would execute that file at its start.
                env={"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
                start_new_session=True,
            )
        except FileNotFoundError:
            message = "bash is not on this machine: install it, scripts are parsed with it"
            raise Conclusion("missing-tool", message) from None

    def stop(self) -> None:
        """End bash, and what it forked."""
        process, self._process = self._process, None
        if process is not None and os.getpid() == self._owner:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def _asked(process: subprocess.Popen[bytes]) -> tuple[int, str]:
    """Return what bash says of the script that lies ready.

    Raises TimeoutError, and EOFError or BrokenPipeError where bash is gone.
    """
    assert process.stdin is not None
    assert process.stdout is not None
    source = process.stdout.fileno()
    poll, end = select.poll(), time.monotonic() + _SECONDS
    poll.register(source, select.POLLIN)
    os.write(process.stdin.fileno(), b"\n")
    said = b""
    while said.count(b"\0") < 2:
        if not poll.poll(max(end - time.monotonic(), 0) * 1000):
            raise TimeoutError
        piece = os.read(source, 1 << 16)
        if not piece:
            raise EOFError
        said += piece
    status, messages, _ = said.split(b"\0")
    return int(status), messages.decode("utf-8", "replace")
