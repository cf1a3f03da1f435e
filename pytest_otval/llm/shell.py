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
_KILLED = 128 + 9
_LEFT_OUT = b"\n[the middle of the output is left out here]\n"

# The limit kills the command's process group and not its container, so that services of earlier commands live on.
# Nobody waits longer than the command: the reader of the pipe is told of its end.
_LIMITED = f"""\
exec 7>&1
{{
{TOOLBOX}/busybox setsid "$@" >&7 2>&1 7>&- &
echo "$!"
wait "$!"
echo "$?"
}} | {{
read -r command
read -r -t "$0" status && exit "$status"
kill -KILL -"$command"
exit {_KILLED}
}}
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
        if "\0" in command:
            return Ran("", None, 0.0, note="the command was not run: a command line cannot hold a NUL character")
        if not self._shell:
            self._shell = self._found_shell()
        # No encoding has half characters, which JSON of a model may hold.
        words = [self._shell, "-c", command.encode(errors="replace").decode()]
        argv = [f"{TOOLBOX}/sh", "-c", _LIMITED, str(math.ceil(seconds)), *words]
        began = time.monotonic()
        result = self._place.run(self._command(argv, seconds + _SLACK))
        took = time.monotonic() - began
        output = _read(result.log)
        if result.ended != "exit" or result.status is None:
            return self._revived(result.ended, output, took)
        self.left_alive = result.left_alive
        if result.status == _KILLED and took >= seconds:
            note = f"the command was killed after {seconds:.0f} s; processes that it left elsewhere go on"
            return Ran(output, None, took, timed_out=True, note=note)
        return Ran(output, result.status, took)

    def _revived(self, ended: str, output: str, took: float) -> Ran:
        """Start the container anew, where it died of what the command did."""
        self.left_alive = 0
        if ended == "killed":
            raise Conclusion("killed", "the agent had its container killed from outside", tail(self._place.log))
        if ended == "refused":
            raise Conclusion("bad-task", f"no command of an agent can start: {output.strip()[-200:]}")
        self._place.revive()
        if ended == "storage":
            raise OutOfSpaceError("the agent wrote more than storage_mb")
        again = "all processes were killed, and the machine was started again; what was written is there"
        if ended == "exit":
            return Ran(output, None, took, note=f"something killed the shell that ran the command: {again}")
        if ended == "memory":
            self.memory_kills += 1
            return Ran(output, None, took, memory_killed=True, note=f"the memory was used up: {again}")
        return Ran(output, None, took, timed_out=True, note=f"the command could not be stopped: {again}")

    def _found_shell(self) -> str:
        result = self._place.run(self._command([f"{TOOLBOX}/sh", "-c", _FIND_SHELL], _SLACK))
        if result.ended != "exit":
            self._revived(result.ended, _read(result.log), result.seconds)
        return _read(result.log).strip().partition("\n")[0] or f"{TOOLBOX}/sh"

    def _command(self, argv: list[str], seconds: float) -> Command:
        return Command(argv, self._place.log, self._env, self._place.user, self._place.workdir, seconds)


def _read(path: Path) -> str:
    with path.open("rb") as file:
        data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            file.seek(path.stat().st_size - MOST_BYTES // 2)
            data = data[: MOST_BYTES // 2] + _LEFT_OUT + file.read(MOST_BYTES // 2)
    return data.decode(errors="replace")
