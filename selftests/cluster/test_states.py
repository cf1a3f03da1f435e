"""What Slurm says, and what it does not."""

import os
import stat

import pytest

from pytest_otval.cluster.states import JobState, Slurm, SlurmUnreachableError, cancel, job_name
from pytest_otval.core import OtvalUsageError


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Put scripts in place of Slurm's programs."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")

    def make(**bodies):
        for name, body in bodies.items():
            program = folder / name
            program.write_text(f'#!/bin/sh\necho "${{0##*/}} $*" >>{tmp_path}/calls\n{body}\n')
            program.chmod(program.stat().st_mode | stat.S_IXUSR)

    return make


def says(*lines):
    return "cat <<'END'\n" + "\n".join(lines) + "\nEND"


def test_elements_are_told_by_the_name_of_their_array(programs, tmp_path):
    programs(
        squeue=says(
            "7_0|otval-r.0|RUNNING|n1|None",
            "7_1|otval-r.0|PENDING||Priority",
            "9_0|otval-r.1|CANCELLED by 1000|n2|None",
            "9_[1-3]|otval-r.1|PENDING||Resources",
            "8_0|otval-other.0|RUNNING|n1|None",
            "",
            "half",
        )
    )
    found = Slurm("r").states([0, 1])
    assert {place: (state.job, state.phase, state.node) for place, state in found.items()} == {
        (0, 0): ("7_0", "running", "n1"),
        (0, 1): ("7_1", "pending", ""),
        (1, 0): ("9_0", "over", "n2"),
    }
    assert f"--name={job_name('r', 0)},{job_name('r', 1)}" in (tmp_path / "calls").read_text()


@pytest.mark.parametrize(
    ("state", "phase"),
    [
        ("PENDING", "pending"),
        ("REQUEUED", "pending"),
        ("RUNNING", "running"),
        ("COMPLETING", "running"),
        ("SUSPENDED", "running"),
        ("COMPLETED", "over"),
        ("FAILED", "over"),
        ("OUT_OF_MEMORY", "over"),
        ("NODE_FAIL", "over"),
        ("TIMEOUT", "over"),
        ("PREEMPTED", "over"),
    ],
)
def test_phases(state, phase):
    assert JobState("1_0", 0, 0, state).phase == phase


@pytest.mark.parametrize("reason", ["PartitionConfig", "BadConstraints", "InvalidAccount", "PartitionTimeLimit"])
def test_reasons_for_which_no_job_ever_starts(reason):
    assert JobState("1_0", 0, 0, "PENDING", "", reason).hopeless == reason
    assert not JobState("1_0", 0, 0, "RUNNING", "", reason).hopeless


@pytest.mark.parametrize("reason", ["Priority", "Resources", "ReqNodeNotAvail, UnavailableNodes:n1", "BeginTime", ""])
def test_reasons_that_pass(reason):
    assert not JobState("1_0", 0, 0, "PENDING", "", reason).hopeless


@pytest.mark.parametrize("reason", ["launch failed requeued held", "launch_failed_requeued_held"])
def test_a_job_that_a_node_could_not_start_is_held(reason):
    assert JobState("1_0", 0, 0, "PENDING", "", reason).held_by_failure


def test_sacct_is_asked_only_for_what_squeue_has_forgotten(programs, tmp_path):
    programs(squeue=says("7_0|otval-r.0|RUNNING|n1|None"), sacct=says("9_0|otval-r.1|COMPLETED|n2"))
    slurm = Slurm("r")
    assert set(slurm.states([0])) == {(0, 0)}
    assert "sacct" not in (tmp_path / "calls").read_text()
    assert slurm.states([0, 1])[1, 0].phase == "over"


def test_without_accounting_sacct_is_asked_once(programs, tmp_path):
    programs(squeue="true", sacct="echo 'Slurm accounting storage is disabled' >&2; exit 1")
    slurm = Slurm("r")
    assert slurm.states([0]) == slurm.states([0]) == {}
    assert (tmp_path / "calls").read_text().count("sacct") == 1


def test_a_controller_that_does_not_answer_says_nothing_of_jobs(programs):
    programs(squeue="echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1")
    with pytest.raises(SlurmUnreachableError, match="Unable to contact"):
        Slurm("r").states([0])


def test_where_there_is_no_slurm_it_is_said(programs):
    os.environ["PATH"] = "/nowhere"
    with pytest.raises(OtvalUsageError, match="squeue is not on PATH"):
        Slurm("r").states([0])
    assert Slurm("r").states([]) == {}


def test_all_arrays_of_a_run_are_cancelled_by_name(programs, tmp_path):
    programs(scancel="true")
    cancel("r", [0, 1])
    calls = (tmp_path / "calls").read_text()
    assert "--name=otval-r.0" in calls and "--name=otval-r.1" in calls
