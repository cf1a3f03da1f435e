"""A process that holds containers is killed: the containers end with it, and the next run sweeps its folder."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import psutil
import pytest

from pytest_otval.sandbox.leftovers import sweep

pytestmark = pytest.mark.integration

HOLDER = """
import sys
from pathlib import Path
from pytest_otval.sandbox.apptainer import FLAVOURS, ApptainerSandbox
from pytest_otval.sandbox.base import Command, ContainerSpec
from pytest_otval.sandbox.leftovers import OwnScratch

flavour, toolbox, base, network = sys.argv[1:]
scratch = OwnScratch(Path(base))
sandbox = ApptainerSandbox(FLAVOURS[flavour], Path(toolbox), scratch, "slirp4netns")
with sandbox.open(ContainerSpec((Path(toolbox),), overlay=scratch.new("layer"), network=network)) as container:
    print(scratch.folder, container.init_pid, flush=True)
    text = "trap '' TERM HUP INT; while :; do echo x; busybox sleep 1; done"
    container.run(Command(["/.otval/sh", "-c", text], scratch.folder / "log", {"PATH": "/.otval"}))
"""
WAIT_SECONDS = 20


def processes():
    """Yield (session, command line) of all living processes."""
    for process in psutil.process_iter():
        with suppress(psutil.Error, ProcessLookupError):
            if process.status() != psutil.STATUS_ZOMBIE:
                yield os.getsid(process.pid), process.cmdline()


def alive(session, init):
    """Command lines of what is left of a container: its session, and its way to the network."""
    return [words for own, words in processes() if own == session or ("--exit-fd" in words and init in words)]


def left_at_last(session, init):
    """Wait until nothing is left, and return what is."""
    deadline = time.monotonic() + WAIT_SECONDS
    while (left := alive(session, init)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left


@pytest.fixture
def holder(real, tmp_path):
    """Start a process that holds a container; returns it, its scratch folder, the container's session and init."""
    started = []

    def start(network="none"):
        toolbox = real.sandbox._toolbox
        argv = [sys.executable, "-c", HOLDER, real.settings.verdict.flavour, toolbox, tmp_path, network]
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
        started.append(process)
        folder, init = process.stdout.readline().split()
        return process, folder, os.getsid(int(init)), init

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()
    sweep(tmp_path, real.sandbox.remove)


@pytest.mark.parametrize(("network", "least"), [("none", 2), ("public", 3)])
def test_container_ends_with_its_holder(real, holder, tmp_path, network, least):
    if network == "public" and not real.allow_public:
        pytest.skip("the profile has no public network")
    process, folder, session, init = holder(network)
    assert sweep(tmp_path, real.sandbox.remove) == [], "its owner is alive"
    assert len(alive(session, init)) >= least
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert left_at_last(session, init) == []
    (line,) = sweep(tmp_path, real.sandbox.remove)
    assert line.startswith(os.path.basename(folder))
    assert not os.path.exists(folder)


def test_sweep_kills_what_still_runs(real, holder, tmp_path):
    """The runtime is stopped, as a hanging file system would stop it: it does not notice that its holder died."""
    process, folder, session, init = holder()
    os.kill(session, signal.SIGSTOP)
    process.kill()
    process.wait()
    (line,) = sweep(tmp_path, real.sandbox.remove)
    assert "processes killed" in line and " 0 processes" not in line
    assert left_at_last(session, init) == []
    assert not os.path.exists(folder)


def test_half_written_records_are_swept(real, holder, tmp_path):
    process, folder, session, init = holder()
    process.kill()
    process.wait()
    for name in ("owner.json", "sessions"):
        with open(os.path.join(folder, name), "a") as file:
            file.write('{"half')
    sweep(tmp_path, real.sandbox.remove)
    assert not os.path.exists(folder)
    assert left_at_last(session, init) == []
