"""The shell of an agent: its commands run in its container, one after the other, each with a limit of its own."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from pathlib import Path

from pytest_otval.core import Conclusion
from pytest_otval.sandbox.base import TOOLBOX, Command
from pytest_otval.trial.agents.base import AgentPlace
from pytest_otval.trial.layer import tail

MOST_BYTES = 1024 * 1024
"""Of a command's output that is looked at: its first and last half."""
_SLACK = 10.0
"""Seconds after a command's own limit at which its container is killed, where what kills the command was killed."""

# The limit kills the command's session and not its container, so that services of earlier commands live on.
_LIMITED = f"""\
{TOOLBOX}/busybox setsid "$@" &
command=$!
{TOOLBOX}/busybox setsid {TOOLBOX}/busybox sh -c '{TOOLBOX}/busybox sleep "$1"; kill -KILL -"$2"' - "$0" "$command" \
</dev/null >/dev/null 2>&1 &
watch=$!
wait "$command"
status=$?
kill -KILL -"$watch"
exit "$status"
"""

_FIND_SHELL = "command -v bash || command -v sh"


class OutOfSpaceError(Exception):
    """The agent wrote more than the task's storage holds: no command can go on."""


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command of an agent ended."""

    output: str
    status: int | None
    seconds: float
    timed_out: bool = False
    memory_killed: bool = False
    note: str = ""
    """What the agent is told beside the output."""


class Shell:
    """Runs commands as the task's user, in its workdir, with its variables and ``env``."""

    def __init__(self, place: AgentPlace, env: dict[str, str] | None = None) -> None:
        self._place = place
        self._env = {**place.env, **(env or {})}
        self._shell = ""
        self.memory_kills = 0
        self.left_alive = 0
        """Processes that commands left running, after the latest one."""

    def run(self, command: str, seconds: float) -> Ran:
        """Run a command of at most so many seconds. Raises OutOfSpaceError, and Conclusion for what is no agent's."""
        if not self._shell:
            self._shell = self._found_shell()
        argv = [f"{TOOLBOX}/sh", "-c", _LIMITED, str(math.ceil(seconds)), self._shell, "-c", command]
        began = time.monotonic()
        result = self._place.run(self._command(argv, seconds + _SLACK))
        output = _read(result.log)
        took = time.monotonic() - began
        if result.ended == "exit":
            self.left_alive = result.left_alive
            if took >= seconds:
                note = f"the command was killed after {seconds:.0f} s; processes that it left elsewhere go on"
                return Ran(output, None, took, timed_out=True, note=note)
            return Ran(output, result.status, took)
        return self._revived(result.ended, output, took)

    def _revived(self, ended: str, output: str, took: float) -> Ran:
        """Start the container anew, where it died of what the command did."""
        self.left_alive = 0
        if ended == "storage":
            raise OutOfSpaceError("the agent wrote more than storage_mb")
        if ended == "killed":
            raise Conclusion("killed", "the agent had its container killed from outside", tail(self._place.log))
        if ended == "refused":
            raise Conclusion("bad-task", f"no command of an agent can start: {output.strip()[-200:]}")
        if self._place.revive is None:
            words = "used more than memory_mb" if ended == "memory" else "could not be stopped"
            raise Conclusion("memory-limit" if ended == "memory" else "agent-timeout", f"the agent {words}")
        self._place.revive()
        again = "all processes were killed, and the machine was started again; what was written is there"
        if ended == "memory":
            self.memory_kills += 1
            return Ran(output, None, took, memory_killed=True, note=f"the memory was used up: {again}")
        return Ran(output, None, took, timed_out=True, note=f"the command could not be stopped: {again}")

    def _found_shell(self) -> str:
        result = self._place.run(self._command([f"{TOOLBOX}/sh", "-c", _FIND_SHELL], _SLACK))
        return _read(result.log).strip().partition("\n")[0] or f"{TOOLBOX}/sh"

    def _command(self, argv: list[str], seconds: float) -> Command:
        return Command(argv, self._place.log, self._env, self._place.user, self._place.workdir, seconds)


def _read(path: Path) -> str:
    with path.open("rb") as file:
        data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            size = path.stat().st_size
            file.seek(size - MOST_BYTES // 2)
            left_out = f"\n[{size - MOST_BYTES} bytes are left out here]\n".encode()
            data = data[: MOST_BYTES // 2] + left_out + file.read(MOST_BYTES // 2)
    return data.decode(errors="replace")
