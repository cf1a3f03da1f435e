import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from pytest_otval.sandbox.leftovers import KEPT_SECONDS, OwnScratch, kill_session, start_ticks, sweep

BOOT = Path("/proc/sys/kernel/random/boot_id").read_text().strip()


@pytest.fixture
def sleeper():
    """A process in a session of its own."""
    process = subprocess.Popen(["sleep", "300"], start_new_session=True)
    yield process
    process.kill()
    process.wait()


def leftover(base, name="123-4", owner=None, sessions=None):
    folder = base / name
    (folder / "trial-x").mkdir(parents=True)
    if owner is not None:
        (folder / "owner.json").write_text(owner if isinstance(owner, str) else json.dumps(owner))
    if sessions is not None:
        (folder / "sessions").write_text(sessions)
    return folder


def record(process, later=0):
    return f"{process.pid} {start_ticks(process.pid) + later}\n"


DEAD = {"pid": 2**22 - 1, "start": 1.0, "boot": BOOT}


def test_folder_of_a_living_owner_stays(tmp_path):
    own = OwnScratch(tmp_path)
    own.new("trial")
    (tmp_path / "staged-images").mkdir()
    assert sweep(tmp_path, shutil.rmtree) == []
    assert (tmp_path / "staged-images").exists()
    assert own.folder.exists()


def test_two_sweep_at_once(tmp_path):
    """What another one removes meanwhile is no error."""

    def slower(folder):
        shutil.rmtree(folder)
        shutil.rmtree(folder)

    leftover(tmp_path, owner=DEAD)
    leftover(tmp_path, "124-5", DEAD)
    assert len(sweep(tmp_path, slower)) == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("owner", [None, "", "{"])
def test_folder_of_which_the_owner_is_not_written_yet_stays(tmp_path, owner):
    """Another process may look between the folder and its file: the folder's name says whose it is."""
    folder = leftover(tmp_path, f"{os.getpid()}-{start_ticks(os.getpid())}", owner)
    assert sweep(tmp_path, shutil.rmtree) == []
    assert folder.exists()


@pytest.mark.parametrize(
    "owner",
    [
        DEAD,
        {**DEAD, "pid": os.getpid(), "start": 1.0},
        {"pid": os.getpid(), "start": start_ticks(os.getpid()), "boot": "another boot"},
        None,
        "",
        "{",
        "[]",
        "1",
        {"boot": BOOT},
        {"boot": BOOT, "pid": "x", "start": "y"},
        {"boot": BOOT, "pid": None, "start": None},
        {"boot": BOOT, "pid": -5, "start": 1.0},
        {"boot": BOOT, "pid": 10**30, "start": 1.0},
        {"boot": BOOT, "pid": os.getpid(), "start": "nan"},
    ],
)
def test_folder_of_a_dead_owner_goes(tmp_path, owner):
    folder = leftover(tmp_path, owner=owner)
    assert sweep(tmp_path, shutil.rmtree) == ["123-4: 0 processes killed, folder removed"]
    assert not folder.exists()


def test_what_a_user_keeps_stays_for_a_day(tmp_path):
    own = OwnScratch(tmp_path)
    trial = own.new("trial")
    own.keep()
    own.close()
    owner = own.folder / "owner.json"
    owner.write_text(json.dumps(DEAD))
    assert sweep(tmp_path, shutil.rmtree) == []
    assert trial.is_dir()
    os.utime(own.folder / "kept", (0, time.time() - KEPT_SECONDS - 60))
    assert len(sweep(tmp_path, shutil.rmtree)) == 1
    assert not own.folder.exists()


def test_an_empty_folder_is_not_kept(tmp_path):
    own = OwnScratch(tmp_path)
    own.keep()
    own.close()
    assert not own.folder.exists()


def test_what_is_no_folder_of_ours_stays(tmp_path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to("/etc")
    assert sweep(tmp_path, shutil.rmtree) == []


def test_processes_of_a_dead_owner_are_killed(tmp_path, sleeper):
    leftover(tmp_path, owner=DEAD, sessions=f"garbage\n\n1 2 3\n{record(sleeper)}")
    assert sweep(tmp_path, shutil.rmtree) == ["123-4: 1 processes killed, folder removed"]
    assert sleeper.wait() == -signal.SIGKILL


def test_processes_of_another_boot_are_strangers(tmp_path, sleeper):
    leftover(tmp_path, owner={**DEAD, "boot": "another boot"}, sessions=record(sleeper))
    sweep(tmp_path, shutil.rmtree)
    assert sleeper.poll() is None


@pytest.mark.parametrize("later", [100, -100])
def test_session_number_that_was_used_again_is_a_stranger(tmp_path, sleeper, later):
    """The recorded process is gone and another one has its number: it began later or earlier."""
    leftover(tmp_path, owner=DEAD, sessions=record(sleeper, later))
    sweep(tmp_path, shutil.rmtree)
    assert sleeper.poll() is None


def test_whole_session_is_killed(tmp_path):
    words = "sleep 300 & sleep 300 & echo ready; wait"
    leader = subprocess.Popen(["sh", "-c", words], start_new_session=True, stdout=subprocess.PIPE)
    leader.stdout.readline()
    time.sleep(0.05)
    assert kill_session(leader.pid) == 3
    assert leader.wait() == -signal.SIGKILL
    leader.stdout.close()


def test_own_scratch_records_and_goes(tmp_path, sleeper):
    own = OwnScratch(tmp_path)
    assert json.loads((own.folder / "owner.json").read_text())["pid"] == os.getpid()
    own.record(sleeper.pid)
    own.record(2**22 - 1)
    session, start = (own.folder / "sessions").read_text().split()
    assert (int(session), int(start)) == (sleeper.pid, start_ticks(sleeper.pid))
    assert own.new("trial") != own.new("trial")
    own.close()
    assert own.folder.exists(), "there are trials in it"
    for path in own.folder.glob("trial-*"):
        path.rmdir()
    own.close()
    assert not own.folder.exists()
    own.close()
