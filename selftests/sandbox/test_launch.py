"""Programs as children and as steps of a job: the same descriptors, the same ends."""

import os
import signal
import stat
import time

import pytest

from pytest_otval.sandbox.base import NoStartError
from pytest_otval.sandbox.launch import Child, Start, Step

FAKE_SRUN = """#!/bin/sh
echo "$*" >{folder}/srun
while case $1 in -*) true ;; *) false ;; esac; do shift; done
# Slurm hands on no descriptors.
exec "$@" </dev/null >/dev/null 9>&-
"""


@pytest.fixture
def srun(tmp_path, monkeypatch):
    """Put a program in place of srun that starts what it is given; return what it was asked."""
    program = tmp_path / "bin" / "srun"
    program.parent.mkdir()
    program.write_text(FAKE_SRUN.format(folder=tmp_path))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return tmp_path / "srun"


@pytest.fixture(params=[Child, Step], ids=["child", "step"])
def launch(request, srun):
    """Start a shell script; return what was started, and the read ends of its output and errors."""

    def start(script, memory_mb=None):
        (out, out_end), (err, err_end) = os.pipe(), os.pipe()
        stdin, stdin_end = os.pipe()
        os.write(stdin_end, b"from the other end\n")
        os.close(stdin_end)
        cores = frozenset(sorted(os.sched_getaffinity(0))[:1])
        words = Start(["/bin/sh", "-c", script], {"A": "1"}, cores, (stdin, out_end, err_end), memory_mb)
        try:
            started = request.param(words)
        finally:
            for descriptor in (stdin, out_end, err_end):
                os.close(descriptor)
        files.extend((os.fdopen(out), os.fdopen(err)))
        return started, *files[-2:]

    files = []
    yield start
    for file in files:
        file.close()


def test_it_has_what_it_was_given(launch):
    started, out, err = launch('read line; echo "$line $A ${HOME-none} $(nproc) $PWD"; echo "$$" >&2')
    assert out.read() == "from the other end 1 none 1 /\n"
    assert int(err.read()) == started.pid
    assert not started.was_killed()
    assert not started.is_alive()


def test_it_leads_a_session_of_its_own(launch):
    started, out, _ = launch("sleep 600")
    assert started.is_alive()
    assert os.getsid(started.pid) == started.pid
    os.killpg(started.pid, signal.SIGKILL)
    assert started.was_killed()
    assert out.read() == ""


@pytest.mark.parametrize("status", [0, 3, 137])
def test_a_program_that_ends_by_itself_was_not_killed(launch, status):
    started, *_ = launch(f"exit {status}")
    while started.is_alive():
        time.sleep(0.01)
    assert not started.was_killed()


def test_a_step_has_its_memory_and_cores(srun, launch):
    started, out, _ = launch("echo", memory_mb=200)
    assert out.read() and not started.was_killed()
    if isinstance(started, Step):
        assert "--exact" in srun.read_text() and "--cpus-per-task=1 --mem=264M" in srun.read_text()


def test_a_step_that_slurm_ends_as_a_whole_was_killed(srun):
    with open(os.devnull, "r+b") as null:
        words = Start(["/bin/sleep", "600"], {}, frozenset(os.sched_getaffinity(0)), (null.fileno(),) * 3)
        step = Step(words)
    with open(f"/proc/{step.pid}/stat") as file:
        parent = int(file.read().rpartition(")")[2].split()[1])
    os.kill(parent, signal.SIGKILL)
    assert step.was_killed()
    os.kill(step.pid, signal.SIGKILL)


def test_what_srun_refuses_is_told(srun):
    program = srun.parent / "bin" / "srun"
    program.write_text("#!/bin/sh\necho 'srun: error: Unable to create step: Memory required' >&2; exit 1\n")
    with open(os.devnull, "r+b") as null, pytest.raises(NoStartError, match="Memory required"):
        Step(Start(["/bin/true"], {}, frozenset({0}), (null.fileno(),) * 3))


def test_without_srun_it_is_told(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with open(os.devnull, "r+b") as null, pytest.raises(NoStartError, match="srun is not on PATH"):
        Step(Start(["/bin/true"], {}, frozenset({0}), (null.fileno(),) * 3))
