"""After many trials and killed builds nothing is left: no process, mount, FUSE daemon, folder, queue or semaphore."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from pytest_otval.profile import load_profile
from pytest_otval.settings import RunSettings, Settings, VerdictSettings
from pytest_otval.stages.machine import Machine, own_extensions, probe_flavour
from pytest_otval.stages.question import Question
from pytest_otval.task.dataset import DatasetSettings
from pytest_otval.task.load import load_task
from pytest_otval.workspace import Workspace, scratch
from selftests.fakes import ask

pytestmark = [pytest.mark.slow, pytest.mark.integration]

ROOT = Path(__file__).parents[1]
TRIALS = 200
KILLED_BUILDS = 50

BUILD = """
import sys
from pathlib import Path
from pytest_otval.images.model import ImageRequest
from pytest_otval.profile import load_profile
from pytest_otval.settings import RunSettings, Settings, VerdictSettings
from pytest_otval.stages.machine import Machine, own_extensions
from pytest_otval.workspace import Workspace

settings = Settings(RunSettings(Path(sys.argv[1])), VerdictSettings(flavour=sys.argv[3]))
machine = Machine(settings, Workspace.from_environment(), load_profile("local", Path(sys.argv[4])), own_extensions())
print("started", flush=True)
machine.images.ensure(ImageRequest(Path(sys.argv[2]), None, 600.0))
"""


def inventory() -> dict[str, int]:
    """Count what this user has on the machine."""
    mine = [p for p in psutil.process_iter(["uids", "name"]) if p.info["uids"] and p.info["uids"].real == os.getuid()]
    names = [p.info["name"] for p in mine]
    mounts = Path("/proc/self/mounts").read_text().splitlines()
    return {
        "processes": len(mine),
        "fuse daemons": sum("fuse" in name for name in names),
        "faked": names.count("faked"),
        "mounts": sum("fuse" in line or str(scratch()) in line for line in mounts),
        "queues": own_rows("msg"),
        "semaphores": own_rows("sem"),
        "scratch folders": sum(path.is_dir() for path in scratch().iterdir()),
    }


def own_rows(table: str) -> int:
    """Count this user's rows of a table of System V objects; its first line names the columns."""
    head, *rows = [line.split() for line in Path("/proc/sysvipc", table).read_text().splitlines()]
    return sum(row[head.index("uid")] == str(os.getuid()) for row in rows)


def assert_nothing_more(before: dict[str, int]) -> None:
    """Processes take a moment to be reaped."""
    for _ in range(50):
        after = inventory()
        more = {key: (before[key], after[key]) for key in after if after[key] > before[key]}
        if not more:
            return
        time.sleep(0.2)
    raise AssertionError(f"more than before: {more}")


def test_trials_leave_nothing(tmp_path: Path) -> None:
    workspace, profile = Workspace.from_environment(), load_profile("local", ROOT)
    flavour, _ = probe_flavour(workspace, profile)
    task = load_task(ROOT / "datasets" / "demo" / "tasks" / "answer-file", "demo")
    before = inventory()
    machine = Machine(
        Settings(RunSettings(tmp_path), VerdictSettings(flavour=flavour)), workspace, profile, own_extensions()
    )
    for number in range(TRIALS):
        stage = ("oracle", "noop")[number % 2]
        result, _ = ask(stage, machine, Question(task, DatasetSettings(), tmp_path / f"{stage}-{number}"))
        assert result.reason == "expected", result
    machine.close()
    assert_nothing_more(before)


def test_killed_builds_leave_nothing(tmp_path: Path) -> None:
    workspace, profile = Workspace.from_environment(), load_profile("local", ROOT)
    flavour, _ = probe_flavour(workspace, profile)
    before = inventory()
    stored = {path.name for path in workspace.images.iterdir()}
    for number in range(KILLED_BUILDS):
        context = tmp_path / f"context-{number}"
        context.mkdir()
        (context / "Dockerfile").write_text(f"FROM debian:bookworm-slim\nRUN sleep 300; echo {number}\n")
        argv = [sys.executable, "-c", BUILD, str(tmp_path / "run"), str(context), flavour, str(ROOT)]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "started\n"
            time.sleep(random.uniform(0.0, 1.5))
            process.send_signal(signal.SIGKILL)
    probe_flavour(workspace, profile)
    assert_nothing_more(before)
    assert {path.name for path in workspace.images.iterdir()} <= stored
