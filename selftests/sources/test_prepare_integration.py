"""``prepare`` as a process of its own: killed, interrupted, on a full disk."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from selftests.checks.conftest import write_task
from selftests.sources.test_patched_dataset import content

pytestmark = pytest.mark.integration

TASKS = 120
FIRST_HELD = 100
"""Of those whose making can be held up."""
PATCH = f"""\
import sys, time
from pathlib import Path

from pytest_otval.sources import parts
from pytest_otval.sources.dataset import PatchedDataset
from pytest_otval.sources.library import resources
from pytest_otval.sources.patches import Patch

parts.MIN_TASKS = parts.MEAN_REST = 5

HOLD = Path(__file__).parents[2] / "hold"

def write_right(task):
    while task.name >= "task-{FIRST_HELD}" and HOLD.exists():
        time.sleep(0.01)
    task.write("notes.txt", "right")

right = Patch("right", "spelling", write_right, lambda task: "wrong" in task.text("notes.txt"))

if __name__ == "__main__":
    sys.exit(PatchedDataset(__file__, [right, resources(1, 2048, 10240)]).main())
"""


class Preparing:
    """A dataset, and the means to prepare it elsewhere."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for number in range(TASKS):
            files = {"notes.txt": f"wrong {number}\n", "task.toml": "[metadata]\nname = 'x'\n"}
            write_task(root / "origin" / "tasks" / f"task-{number:03}", files)
        self.script = root / "datasets" / "many" / "patch.py"
        self.script.parent.mkdir(parents=True)
        self.script.write_text(PATCH)
        (self.script.parent / "dataset.toml").write_text('[otval.source]\nkind = "local"\npath = "../../origin"\n')

    def start(self, workspace: Path) -> subprocess.Popen[str]:
        (workspace / "datasets").mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, "OT_WORKSPACE": str(workspace), "OT_SCRATCH": str(self.root / "scratch")}
        return subprocess.Popen(
            [sys.executable, str(self.script), "prepare"],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    @contextmanager
    def held(self) -> Iterator[Path]:
        """Let nobody make the last tasks in the block, or as long as the file is there that it gives."""
        hold = self.root / "hold"
        hold.touch()
        try:
            yield hold
        finally:
            hold.unlink(missing_ok=True)

    def finish(self, workspace: Path) -> dict[str, bytes]:
        process = self.start(workspace)
        out, err = process.communicate()
        assert process.returncode == 0, err
        assert f"many: {TASKS} tasks, 0 refused, 0 errors" in out
        assert os.listdir(workspace / "datasets") == ["many"]
        return content(workspace / "datasets" / "many")


def parts_of(workspace: Path) -> int:
    return len(list((workspace / "datasets" / ".many.making" / "data").glob("part-*")))


def wait_for(condition, process: subprocess.Popen[str]) -> None:
    while not condition():
        assert process.poll() is None, process.communicate()
        time.sleep(0.005)


@pytest.fixture(scope="module")
def preparing(tmp_path_factory):
    return Preparing(tmp_path_factory.mktemp("preparing"))


@pytest.fixture(scope="module")
def undisturbed(preparing):
    """What a run comes to that nothing disturbs."""
    return preparing.finish(preparing.root / "undisturbed")


def test_killed_several_times_it_comes_to_the_same(preparing, undisturbed, tmp_path):
    for more in (1, 3, 2):
        wanted = parts_of(tmp_path) + more
        with preparing.held():
            process = preparing.start(tmp_path)
            wait_for(lambda wanted=wanted: parts_of(tmp_path) >= wanted, process)
            workers = psutil.Process(process.pid).children()
            process.kill()
            process.communicate()
            assert psutil.wait_procs(workers, timeout=60)[1] == [], "no process stays"
        assert not (tmp_path / "datasets" / "many").exists()
        assert parts_of(tmp_path) >= wanted
    assert preparing.finish(tmp_path) == undisturbed
    left = list((preparing.root / "scratch").rglob("*.tasks"))
    assert left == [], "what killed processes left is gone"


def test_interrupted_it_says_what_is_kept(preparing, undisturbed, tmp_path):
    with preparing.held() as hold:
        process = preparing.start(tmp_path)
        wait_for(lambda: parts_of(tmp_path) >= 2, process)
        process.send_signal(signal.SIGINT)
        # What was begun comes to its end.
        hold.unlink()
        _, err = process.communicate()
    assert process.returncode == 1
    (line,) = err.splitlines()
    assert line.startswith("error: interrupted: ") and line.endswith("made parts are kept, prepare goes on with them")
    assert preparing.finish(tmp_path) == undisturbed


def test_a_second_one_at_the_same_time_is_refused(preparing, undisturbed, tmp_path):
    with preparing.held():
        first = preparing.start(tmp_path)
        wait_for(lambda: parts_of(tmp_path) >= 1, first)
        second = preparing.start(tmp_path)
        assert second.communicate()[1] == "error: another process prepares many now: wait for it, or end it\n"
    first.communicate()
    assert content(tmp_path / "datasets" / "many") == undisturbed


def test_a_full_disk_is_told_and_leaves_nothing_half(preparing, undisturbed, tmp_path, small_scratch):
    corner = Path(small_scratch, f"prepare-{os.getpid()}")
    corner.mkdir()
    try:
        filler = corner / "filler"
        with filler.open("wb") as file:
            file.write(b"x" * (shutil.disk_usage(corner).free - 40 * 1024))
        process = preparing.start(corner)
        _, err = process.communicate()
        assert process.returncode == 1
        assert "No space left on device" in err and len(err.splitlines()) == 1
        filler.unlink()
        assert preparing.finish(corner) == undisturbed
    finally:
        shutil.rmtree(corner)
