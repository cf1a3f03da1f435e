"""The life of a job on its node: make the node ready, run pytest on a shard, ship what it answers, say how it ended.

Started by ``bootstrap`` in the environment that it unpacked. An end is written down wherever there is time for it;
where there is none, because the node died or the job was killed at once, that there is no end says so.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from pytest_otval.cluster.bootstrap import FAILED
from pytest_otval.cluster.job_profile import set_addresses
from pytest_otval.cluster.job_pytest import CONTRACT, command, environment, without_traces
from pytest_otval.cluster.job_servers import Servers
from pytest_otval.cluster.journal import Fault, answered, attempt_name
from pytest_otval.cluster.request import Request, read_request
from pytest_otval.cluster.shards import read_plan, write_plan
from pytest_otval.cluster.shipping import Shipper
from pytest_otval.cluster.spending import Spending
from pytest_otval.cluster.staging import StagingError, copy_images, make_workspace, read_staging
from pytest_otval.cluster.submission import Element, arrays_of, read_array, resumed_at
from pytest_otval.contract.file import read_contract
from pytest_otval.core import Conclusion, OtvalUsageError
from pytest_otval.profile import load_profile

STOPPED = "stopped"
"""The file of a run folder that lets a run start no more items; see ``glue.stop``."""

SHIP_SECONDS = 0.5
TERMINATED = 128 + signal.SIGTERM
_USAGE_ERROR = 4


@dataclass(slots=True)
class Signals:
    """What Slurm told the job so far."""

    time_is_up: bool = False
    """Its time limit comes near (USR2)."""
    terminated: bool = False
    """It is to end now (TERM): cancelled, preempted, queued again, or at its limit."""

    def listen(self) -> None:
        """Take the signals from now on."""
        signal.signal(signal.SIGUSR2, self._hear)
        signal.signal(signal.SIGTERM, self._hear)

    def _hear(self, number: int, _: FrameType | None) -> None:
        self.time_is_up |= number == signal.SIGUSR2
        self.terminated |= number == signal.SIGTERM


@dataclass(frozen=True, slots=True)
class End:
    """How a life ended."""

    why: str = ""
    fault: Fault = ""
    status: int = 0
    again: bool = False
    """Whether it would get further, if it began once more."""


@dataclass(slots=True)
class Job:
    """One life of one element of an array."""

    run: Path
    folder: Path
    """The node's own, which goes at the end."""
    array: int
    name: str
    """Slurm's, as squeue has it."""
    restart: int
    since: int
    """The array with which the run last went on."""
    node: str
    element: Element
    request: Request
    signals: Signals = field(default_factory=Signals)
    began: float = field(default_factory=time.time)
    spending: Spending = field(init=False)
    servers: Servers = field(init=False)

    def __post_init__(self) -> None:
        self.spending = Spending(self.out, self.run, self.request.models)
        self.servers = Servers(self.folder)

    @property
    def out(self) -> Path:
        """The run folder on the node."""
        return self.folder / "run"

    def live(self) -> int:
        """Do it all; return the exit status."""
        shipper = Shipper(self.out, self.run, attempt_name(self.element.shard, self.name, self.restart))
        shipper.note({**self._facts("began"), "node": self.node, "array": self.array})
        try:
            end = self._run_shard(shipper)
            shipper.note({**self._facts("ended"), "why": end.why, "fault": end.fault})
            self._ship(shipper)
        finally:
            shipper.close()
            self.spending.close()
            self.servers.end()
        if end.why:
            print(f"otval: {self.node}: {end.why}", file=sys.stderr, flush=True)
        if end.again:
            self._queue_again()
        return end.status

    def _facts(self, event: str) -> dict[str, Any]:
        return {"kind": "shard", "event": event, "shard": self.element.shard, "job": self.name, "time": time.time()}

    def _run_shard(self, shipper: Shipper) -> End:
        try:
            numbers = self._left()
            if not numbers:
                return End()
            if spent := self.spending.over():
                return End(f"{spent}: {len(numbers)} items are left")
            self._ship(shipper)
            self._make_ready(numbers)
            self._serve()
        except (StagingError, OtvalUsageError, Conclusion, OSError) as error:
            return End(f"the node could not be made ready: {error}", "node", FAILED)
        if self.signals.terminated:
            return End("it was ended by Slurm before it ran anything", "slurm", TERMINATED)
        status = 0 if self.servers.fault() else self._pytest(shipper)
        left = len(self._left())
        return End() if not left else self._end(status, left, left < len(numbers))

    def _end(self, status: int, left: int, progress: bool) -> End:
        """Say why items are left; ``progress``: whether there were more when it began."""
        if self.signals.terminated:
            return End(f"it was ended by Slurm: {left} items are left", "slurm", TERMINATED)
        if fault := self.servers.fault():
            sys.stderr.write(self.servers.last_words())
            return End(f"{fault}: {left} items are left", "server", 1)
        if status < 0:
            killer = signal.Signals(-status).name
            return End(f"pytest was killed by {killer}: {left} items are left", "item", 128 - status)
        if self.signals.time_is_up:
            return End(f"its time was up: {left} items are left", "slurm", 1, again=progress)
        if spent := self.spending.over():
            return End(f"{spent}: {left} items are left")
        said = self._last_error() if status == _USAGE_ERROR else ""
        return End(f"pytest ended with {status}: {left} items are left{said and f': {said}'}", "node", 1)

    def _left(self) -> list[int]:
        """Return the numbers of the items that this job is for and that nobody has answered."""
        numbers = self.element.items
        if numbers is None:
            numbers = tuple(read_plan(self.run)[self.element.shard])
        done, ids = (
            answered(self.run, self.element.shard, self.since),
            [item.id for item in read_contract(self.run / CONTRACT).items()],
        )
        return [number for number in numbers if ids[number] not in done]

    def _make_ready(self, numbers: Sequence[int]) -> None:
        """Copy all that is needed to the node. Raises StagingError, OtvalUsageError, Conclusion, OSError."""
        staging, workspace = read_staging(self.run), self.folder / "ws"
        make_workspace(staging, workspace)
        (self.folder / "scratch").mkdir()
        profile = load_profile(self.request.profile, workspace)
        os.environ.update(environment(self.folder, self.request, profile, staging.models))
        wanted, items = set(numbers), read_contract(self.run / CONTRACT).items()
        keys = dict.fromkeys(key for number, item in enumerate(items) if number in wanted for key in item.images)
        copy_images(keys, Path(staging.images), profile)
        shutil.copyfile(self.run / CONTRACT, self.folder / CONTRACT)
        plan = read_plan(self.run)
        plan[self.element.shard] = list(numbers)
        write_plan(self.folder, plan)

    def _serve(self) -> None:
        """Serve models, and tell pytest where; why one is not there, the servers tell. Raises OSError."""
        models = self.request.models.served
        urls = self.servers.start(models, without_traces(os.environ), lambda: self.signals.terminated)
        if models and all(urls.values()):
            set_addresses(self.folder / "ws" / "clusters" / f"{self.request.profile}.toml", urls)

    def _pytest(self, shipper: Shipper) -> int:
        """Run pytest to its end and ship what it answers; return its exit status, negative for a signal."""
        shard = f"{self.element.shard + 1}/{len(read_plan(self.run))}"
        with self._errors.open("wb") as errors:
            child = subprocess.Popen(
                command(self.folder, self.request, shard, self.out),
                cwd=self.folder / "ws",
                env=without_traces(os.environ),
                stdin=subprocess.DEVNULL,
                stderr=errors,
            )
        while True:
            with suppress(subprocess.TimeoutExpired):
                child.wait(SHIP_SECONDS)
            if self._must_stop():
                (self.out / STOPPED).touch()
            if (self.signals.terminated or self.servers.fault()) and child.poll() is None:
                child.terminate()
            self._ship(shipper)
            if child.poll() is not None:
                sys.stderr.write(self._errors.read_text(errors="replace"))
                return int(child.returncode)

    def _must_stop(self) -> bool:
        """Whether no more items are to start. A signal that came while nobody listened is made up for."""
        self.signals.time_is_up |= time.time() - self.began > self.request.item_seconds
        return self.signals.time_is_up and self.out.is_dir() and not (self.out / STOPPED).exists()

    def _ship(self, shipper: Shipper) -> None:
        """Ship; what shared storage does not take now is tried again the next time, and missing at the end."""
        # What an answer cost is never told later than the answer.
        self.spending.carry()
        with suppress(OSError):
            shipper.ship()

    @property
    def _errors(self) -> Path:
        return self.folder / "stderr"

    def _last_error(self) -> str:
        lines = self._errors.read_text(errors="replace").strip().splitlines()
        return lines[-1].removeprefix("ERROR: ") if lines else ""

    def _queue_again(self) -> None:
        """Let Slurm start the job once more for what is left; where that fails, who looks at the run next does so."""
        with suppress(OSError, subprocess.SubprocessError):
            subprocess.run(["scontrol", "requeue", self.name], timeout=60, check=True)


def job_of_environment(run: Path, array: int, folder: Path, environment: Mapping[str, str]) -> Job:
    """Return the job in which this process runs. Raises OtvalUsageError, KeyError outside of one."""
    task = environment["SLURM_ARRAY_TASK_ID"]
    elements = read_array(run, array).elements
    if int(task) >= len(elements):
        raise OtvalUsageError(f"the array {array} of {run} was refused: this job is of no use")
    return Job(
        run,
        folder,
        array,
        f"{environment['SLURM_ARRAY_JOB_ID']}_{task}",
        int(environment.get("SLURM_RESTART_COUNT") or 0),
        resumed_at(arrays_of(run)),
        environment.get("SLURMD_NODENAME") or os.uname().nodename,
        elements[int(task)],
        read_request(run),
    )


def main(run: str, array: str, folder: str) -> int:
    """Live, and leave nothing on the node."""
    signals = Signals()
    signals.listen()
    try:
        job = job_of_environment(Path(run), int(array), Path(folder), os.environ)
        job.signals = signals
        return job.live()
    except OtvalUsageError as error:
        print(f"otval: error: {error}", file=sys.stderr, flush=True)
        return FAILED
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
