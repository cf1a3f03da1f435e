"""Builds that are killed, disks that fill, stores that cannot be written, several who ask at once."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pytest_otval.images.inventory import file_fault
from pytest_otval.images.record import image_path, records

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
SLOW = "FROM tiny\nRUN echo before > /before\nCOPY a /a\nRUN echo begun; sleep 3; echo done > /done\nCOPY b /b\n"


@pytest.fixture
def place(tmp_path, environment, machine):
    """Store, scratch and context; skips where the tiny base cannot be built."""
    (tmp_path / "scratch").mkdir()
    return tmp_path / "store", tmp_path / "scratch", environment(SLOW, {"a": "a", "b": "b"})


@pytest.fixture
def start():
    """Start a process that builds; none outlives its test."""
    started = []

    def run(store, scratch, folder, *before):
        argv = [*before, sys.executable, "-m", "selftests.images.build_once", str(store), str(scratch), str(folder)]
        started.append(subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
        return started[-1]

    yield run
    for process in started:
        if process.stdout is not None and not process.stdout.closed:
            process.kill()
            process.communicate()


def end(process):
    words = process.communicate(timeout=300)[0]
    assert process.returncode == 0, words
    return words.strip().splitlines()[-1]


def whole(store):
    """Whether every image that the store speaks of is there as it was packed."""
    found = list(records(store))
    return all(not file_fault(image_path(store, one.key), one) for one in found) and len(found)


def wait_for(scratch, text):
    """Wait until a step of a build has said something."""
    for _ in range(600):
        for log in scratch.rglob("step-*.log"):
            if text in log.read_text(errors="replace"):
                return
        time.sleep(0.1)
    raise AssertionError(f"no step said {text}")


def test_killed_build_leaves_a_whole_store(start, place):
    store, scratch, folder = place
    first = start(store, scratch, folder)
    wait_for(scratch, "begun")
    first.send_signal(signal.SIGKILL)
    first.communicate()
    before = whole(store)
    assert before, "the base, and perhaps what comes before the first COPY"
    key, packed, _ = end(start(store, scratch, folder)).split()
    assert (store / f"{key}.json").exists()
    assert int(packed) >= 1
    assert whole(store) > before
    assert not [path.name for path in store.iterdir() if path.name.startswith(".") or path.suffix == ".lock"]


def test_killed_while_it_packs(start, place):
    store, scratch, folder = place
    (folder / "Dockerfile").write_text("FROM tiny\nRUN head -c 60000000 /dev/urandom > /big\n")
    first = start(store, scratch, folder)
    for _ in range(6000):
        if [path for path in store.glob(".*.sqfs.*") if path.stat().st_size] and list(scratch.rglob("step-0.log")):
            break
        time.sleep(0.01)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    assert whole(store) == 1
    _, packed, swept = end(start(store, scratch, folder)).split()
    assert int(packed) == 1
    assert int(swept) >= 1
    assert whole(store) == 2
    assert not [path.name for path in store.iterdir() if path.name.startswith(".") or path.suffix == ".lock"]


def test_processes_that_ask_at_once_build_once(start, place):
    store, scratch, folder = place
    processes = []
    for number in range(3):
        (scratch / str(number)).mkdir()
        processes.append(start(store, scratch / str(number), folder))
    answers = [end(process).split() for process in processes]
    assert len({key for key, _, _ in answers}) == 1
    # What comes before the first COPY, and what comes after.
    assert sum(int(packed) for _, packed, _ in answers) == 2
    assert whole(store)


def test_damaged_file_is_made_again(start, place):
    store, scratch, folder = place
    key = end(start(store, scratch, folder)).split()[0]
    target = image_path(store, key)
    os.truncate(target, target.stat().st_size // 2)
    assert end(start(store, scratch, folder)).split()[0] == key
    assert whole(store)


@pytest.fixture
def read_only(start, place):
    """Run something where the store cannot be written."""
    store, scratch, folder = place
    store.mkdir(exist_ok=True)
    if os.getuid() != 0:
        yield lambda: (store.chmod(0o555), start(store, scratch, folder))[1]
        store.chmod(0o755)
        return
    mount = f'mount --bind {store} {store} && mount -o remount,ro,bind {store} && exec "$@"'
    yield lambda: start(store, scratch, folder, "unshare", "--mount", "sh", "-c", mount, "sh")


def test_read_only_store_gives_what_it_has(start, place, read_only):
    key = end(start(*place)).split()[0]
    assert end(read_only()).split()[:2] == [key, "0"]


def test_read_only_store_makes_nothing(place, read_only):
    reason, _, headline = end(read_only()).partition(" ")
    assert reason == "base-unavailable"
    assert f"{place[0]} cannot be written: " in headline


@pytest.mark.parametrize("full", ["store", "scratch"])
def test_full_disk_is_nobodys_fault(start, place, full, small_scratch):
    store, scratch, folder = place
    corner = Path(small_scratch, f"images-{os.getpid()}")
    corner.mkdir()
    try:
        if full == "store":
            store = corner
        else:
            scratch = corner
        (folder / "Dockerfile").write_text("FROM tiny\nRUN head -c 40000000 /dev/urandom > /big\n")
        reason, _, headline = end(start(store, scratch, folder)).partition(" ")
        assert reason == "host-disk-full", headline
        assert str(corner) in headline
        assert not list(store.glob(".*"))
        assert whole(store) == 1
        (folder / "Dockerfile").write_text("FROM tiny\nRUN echo 1 > /f\n")
        assert len(end(start(store, scratch, folder)).split()[0]) == 64
        assert whole(store) == 2
    finally:
        shutil.rmtree(corner)
