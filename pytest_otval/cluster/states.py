"""What Slurm says of a run's jobs: squeue first, sacct for what squeue no longer knows and only where it works.

Jobs are found by their names, which hold the run's and are used once. A controller that lost its state gives job ids
again, and a process that died between sbatch and its next line never learnt one.
"""

from __future__ import annotations

import getpass
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from pytest_otval.core import OtvalUsageError

Phase = Literal["pending", "running", "over"]

_RUNNING = frozenset(
    {"RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED", "STAGE_OUT", "SIGNALING", "STOPPED", "RESIZING"}
)
_PENDING = frozenset({"PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "RESV_DEL_HOLD", "SPECIAL_EXIT"})

_HOPELESS = (
    "partitionconfig",
    "partitionnodelimit",
    "partitiontimelimit",
    "badconstraints",
    "invalidaccount",
    "invalidqos",
    "dependencyneversatisfied",
    "assocmaxcpuperjoblimit",
    "assocmaxmemperjob",
    "assocmaxwalldurationperjoblimit",
    "qosmaxcpuperjoblimit",
    "qosmaxmemperjob",
    "qosmaxwalldurationperjoblimit",
    "requestednodeconfigurationisnotavailable",
)
"""Reasons (squeue(1), JOB REASON CODES) for which no job ever starts, without blanks and underscores."""

_HELD_BY_FAILURE = "launchfailedrequeuedheld"

_COMMAND_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class JobState:
    """One element of an array."""

    job: str
    """``123_4``."""
    array: int
    """Which array of the run."""
    element: int
    state: str
    node: str = ""
    reason: str = ""

    @property
    def phase(self) -> Phase:
        """Whether it waits, runs, or will do nothing more."""
        if self.state in _PENDING:
            return "pending"
        return "running" if self.state in _RUNNING else "over"

    @property
    def hopeless(self) -> str:
        """Why it can never start; empty where it may."""
        word = re.sub(r"[ _()]", "", self.reason).lower()
        return self.reason if self.phase == "pending" and word in _HOPELESS else ""

    @property
    def held_by_failure(self) -> bool:
        """Whether Slurm holds it because a node could not start it."""
        return self.phase == "pending" and re.sub(r"[ _()]", "", self.reason).lower() == _HELD_BY_FAILURE


class SlurmUnreachableError(Exception):
    """The controller does not answer now; its jobs may go on."""


def job_name(run: str, array: int) -> str:
    """Return the name of a run's n-th array."""
    return f"otval-{run}.{array}"


class Slurm:
    """Asks for the state of the arrays of one run."""

    def __init__(self, run: str) -> None:
        """``run`` is the name of the run folder."""
        self._run = run
        self._sacct: bool | None = None

    def states(self, arrays: Sequence[int]) -> dict[tuple[int, int], JobState]:
        """Return what is known of the elements of some arrays, by array and element.

        Raises SlurmUnreachableError where the controller does not answer, OtvalUsageError where there is no Slurm.
        """
        if not arrays:
            return {}
        names = ",".join(job_name(self._run, array) for array in arrays)
        known = self._squeue(names)
        forgotten = [array for array in arrays if not any(place[0] == array for place in known)]
        for state in self._sacct_states(forgotten):
            known.setdefault((state.array, state.element), state)
        return known

    def _squeue(self, names: str) -> dict[tuple[int, int], JobState]:
        words = ["squeue", "--states=all", "--noheader", "--array", f"--user={getpass.getuser()}", f"--name={names}"]
        answer = _run([*words, "--format=%i|%j|%T|%N|%r"])
        if answer.returncode:
            raise SlurmUnreachableError(_last_line(answer.stderr))
        return {(state.array, state.element): state for state in self._parsed(answer.stdout)}

    def _parsed(self, text: str) -> Iterator[JobState]:
        for line in text.splitlines():
            job, name, state, node, reason = (*line.split("|", 4), "", "", "", "")[:5]
            run, _, array = name.strip().rpartition(".")
            _, _, element = job.strip().partition("_")
            if run == f"otval-{self._run}" and array.isdecimal() and element.isdecimal():
                # As ``CANCELLED by 1000``.
                word = state.split()[0] if state.split() else ""
                yield JobState(job.strip(), int(array), int(element), word, node.strip(), reason.strip())

    def _sacct_states(self, arrays: Sequence[int]) -> Iterator[JobState]:
        if not arrays or self._sacct is False or shutil.which("sacct") is None:
            return
        names = ",".join(job_name(self._run, array) for array in arrays)
        words = ["sacct", "--noheader", "--parsable2", "--allocations", "--starttime=now-30days"]
        answer = _run([*words, f"--name={names}", "--format=JobID,JobName,State,NodeList"])
        self._sacct = answer.returncode == 0
        if self._sacct:
            yield from self._parsed(answer.stdout)


def cancel(run: str, arrays: Sequence[int], only: Sequence[str] = ()) -> None:
    """Cancel all jobs of some arrays, or those in the states of ``only``. Raises SlurmUnreachableError."""
    chosen = [f"--state={state}" for state in only]
    for array in arrays:
        name = f"--name={job_name(run, array)}"
        answer = _run(["scancel", "--quiet", f"--user={getpass.getuser()}", name, *chosen])
        if answer.returncode:
            raise SlurmUnreachableError(_last_line(answer.stderr))


def cancel_job(job: str) -> None:
    """Cancel one element. Raises SlurmUnreachableError."""
    answer = _run(["scancel", "--quiet", job])
    if answer.returncode:
        raise SlurmUnreachableError(_last_line(answer.stderr))


def _run(words: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(words, capture_output=True, text=True, timeout=_COMMAND_SECONDS, errors="replace")
    except FileNotFoundError:
        raise OtvalUsageError(f"{words[0]} is not on PATH: this is no machine that submits to Slurm") from None
    except subprocess.TimeoutExpired:
        raise SlurmUnreachableError(f"{words[0]} did not answer within {_COMMAND_SECONDS:.0f} s") from None


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no reason given"])[-1]
