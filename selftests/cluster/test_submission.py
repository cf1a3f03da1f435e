"""What is asked of Slurm: a script for each profile as it was agreed, and what sbatch refuses."""

import json
import os
import stat
import time
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_otval.cluster import submission
from pytest_otval.cluster.request import Models, Request, limits, make_request, read_request, write_request
from pytest_otval.cluster.submission import Element, arrays_of, script, submit
from pytest_otval.core import OtvalUsageError
from pytest_otval.profile import PartitionSection, Profile, SlurmSection, load_profile

REPOSITORY = Path(__file__).parents[2]
GOLDEN = Path(__file__).parent / "scripts"
"""``OT_TEST_RENEW=1`` writes them anew; look at the difference."""


def profile(**partition):
    section = PartitionSection(**{"cores": 96, "core_multiple": 48, "max_time": "1-00:00:00", **partition})
    return Profile(name="site", slurm=SlurmSection(partition="p", partitions={"p": section}))


@pytest.mark.parametrize(
    ("name", "partition", "cpus"), [("helma", "", 96), ("helma", "h100", 64), ("zih", "", 0), ("localslurm", "", 2)]
)
def test_the_script_of_a_profile(name, partition, cpus, monkeypatch):
    monkeypatch.setattr(submission, "base_interpreter", lambda: Path("/opt/python/bin/python3.12"))
    request = make_request(load_profile(name, REPOSITORY), partition, cpus, "02:00:00")
    text = script(Path("/shared/ws/runs/20260101-120000-abcdef"), request, 8)
    golden = GOLDEN / f"{name}-{request.partition}.sh"
    if os.environ.get("OT_TEST_RENEW"):
        golden.write_text(text)
    assert text == golden.read_text()


def test_what_is_not_chosen_is_as_little_as_may_be():
    request = make_request(profile())
    assert (request.partition, request.cpus, request.seconds) == ("p", 48, 4 * 3600)
    assert make_request(profile(max_time="00:30:00")).seconds == 1800
    assert make_request(profile(gres="gpu:x", cores_per_gpu=32, core_multiple=1)).gres == "gpu:x:1"


SERVED = {"big": {"serve": {"in_job": True, "gpus": 4, "cpus": 8}}, "small": {"serve": {"in_job": True, "gpus": 1}}}


def test_jobs_that_serve_models_have_gpus_for_them_and_cores_to_spare():
    section = {"cores": 128, "core_multiple": 1, "gpus": 8, "gres": "gpu:x", "cores_per_gpu": 16}
    served = Models(served=("big", "small"))

    def asked(cpus=0, models=served, **changes):
        site = Profile.model_validate({**profile(**{**section, **changes}).model_dump(), "models": SERVED})
        return make_request(site, cpus=cpus, models=models)

    assert (asked().cpus, asked().gres) == (80, "gpu:x:5")
    assert (asked(12).cpus, asked(12).gres) == (12, "gpu:x:5")
    assert asked(128).gres == "gpu:x:8"
    assert (asked(models=Models()).cpus, asked(models=Models()).gres) == (16, "gpu:x:1")
    with pytest.raises(OtvalUsageError, match="--otval-cpus 9: servers of models take 9, and attempts need more"):
        asked(9)
    for changes in ({"gpus": 4}, {"gres": "", "cores_per_gpu": None}):
        with pytest.raises(OtvalUsageError, match=r"need 5 GPUs, and nodes of the partition p have .*otval-partition"):
            asked(**changes)


def test_a_job_has_its_share_of_a_nodes_memory():
    assert make_request(profile(memory_mb=100_000), cpus=96).memory_mb == 100_000
    assert make_request(profile(memory_mb=100_000)).memory_mb == 50_000


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        ({"cpus": 50}, "a multiple of 48 cores, at most 96"),
        ({"cpus": 144}, "at most 96"),
        ({"time": "2-00:00:00"}, "the longest of the partition p is 1-00:00:00"),
        ({"time": "90"}, "is no time as HH:MM:SS"),
        ({"time": "00:02:00"}, "too short: a job starts no more items 120 s before its end"),
        ({"partition": "q"}, "no partition 'q'"),
    ],
)
def test_what_a_site_does_not_have_is_refused(chosen, words):
    with pytest.raises(OtvalUsageError, match=words):
        make_request(profile(), **chosen)


def test_a_profile_without_slurm_is_refused():
    with pytest.raises(OtvalUsageError, match=r"'laptop' has no \[slurm\]"):
        make_request(Profile(name="laptop"))


def test_the_lesser_of_array_and_queue_bounds_the_shards():
    site = Profile(
        name="site",
        slurm=SlurmSection(partition="p", max_array=500, max_submitted=28, partitions={"p": PartitionSection(cores=4)}),
    )
    found = limits(site, make_request(site, time="01:00:00"))
    assert (found.cpus, found.wall_seconds, found.most) == (1, 3480, 28)


def test_a_request_is_read_as_it_was_written(tmp_path):
    request = make_request(load_profile("helma", REPOSITORY), plugins=["my_plugin"])
    request = replace(request, models=Models(("m",), "http://host/v1", 7, 0.5, ("A_KEY",)))
    write_request(tmp_path, request)
    assert read_request(tmp_path) == request
    with pytest.raises(OtvalUsageError, match="was not submitted"):
        read_request(tmp_path / "other")


@pytest.fixture
def sbatch(tmp_path, monkeypatch):
    """Put a program in place of sbatch that keeps its environment and says what it is told to."""

    def make(body):
        program = tmp_path / "bin" / "sbatch"
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\nenv >{tmp_path}/environment\n{body}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")

    return make


REQUEST = Request("site", "p", 2, 3600, 60)


def test_an_array_is_written_down_with_its_job(tmp_path, sbatch):
    sbatch("echo Submitted batch job 17")
    run = tmp_path / "run"
    run.mkdir()
    elements = [Element(0), Element(3, (7, 8)), Element(1, (5,), alone=True)]
    first = submit(run, REQUEST, elements, ["n7"])
    second = submit(run, REQUEST, [Element(2)])
    assert (first.number, first.job, second.number) == (0, "17", 1)
    assert arrays_of(run) == [first, second]
    assert first.elements == tuple(elements) and abs(first.time - time.time()) < 100
    assert (run / "bootstrap.py").is_file()


def test_one_element_is_an_array_too(tmp_path):
    assert "#SBATCH --array=0-0%1" in script(tmp_path, REQUEST, 1)


def test_sbatch_does_not_see_the_job_in_which_this_runs(tmp_path, sbatch, monkeypatch):
    sbatch("echo Submitted batch job 1")
    for name, value in {"SLURM_JOB_ID": "3", "SBATCH_EXPORT": "ALL", "SLURM_CONF": "/c", "SBATCH_ACCOUNT": "a"}.items():
        monkeypatch.setenv(name, value)
    submit(tmp_path, REQUEST, [Element(0)])
    seen = dict(line.split("=", 1) for line in (tmp_path / "environment").read_text().splitlines() if "=" in line)
    assert "SLURM_JOB_ID" not in seen and "SBATCH_EXPORT" not in seen
    assert (seen["SLURM_CONF"], seen["SBATCH_ACCOUNT"]) == ("/c", "a")
    assert os.environ["SLURM_JOB_ID"] == "3"


def test_keys_reach_sbatch_by_their_names_alone(tmp_path, sbatch, monkeypatch):
    sbatch(f'cat "$@" >{tmp_path}/script; echo "$@" >>{tmp_path}/script; echo Submitted batch job 1')
    request = replace(REQUEST, models=Models(key_variables=("A_KEY", "B_KEY")))
    monkeypatch.setenv("A_KEY", "sk-secret-of-a")
    with pytest.raises(OtvalUsageError, match="B_KEY is not set"):
        submit(tmp_path, request, [Element(0)])
    assert not (tmp_path / "script").exists() and not arrays_of(tmp_path)
    monkeypatch.setenv("B_KEY", "sk-secret-of-b")
    submit(tmp_path, request, [Element(0)])
    assert "#SBATCH --export=A_KEY,B_KEY\n" in (tmp_path / "script").read_text()
    assert "A_KEY=sk-secret-of-a\n" in (tmp_path / "environment").read_text()
    written = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "environment"]
    assert not [path for path in written if "sk-secret" in path.read_text()]


def test_what_sbatch_refuses_is_told_in_its_words_and_leaves_no_array(tmp_path, sbatch):
    sbatch("echo 'sbatch: error: Batch job submission failed: Invalid account' >&2; exit 1")
    with pytest.raises(OtvalUsageError, match="refused the jobs: Batch job submission failed: Invalid account"):
        submit(tmp_path, REQUEST, [Element(0)])
    assert [array.elements for array in arrays_of(tmp_path)] == [()]
    sbatch("echo Submitted batch job 2")
    assert submit(tmp_path, REQUEST, [Element(0)]).number == 1, "its name is not used again"


def test_an_array_that_is_none_of_ours_is_told(tmp_path):
    (tmp_path / "arrays").mkdir()
    (tmp_path / "arrays" / "0.json").write_text(json.dumps({"elements": []}))
    with pytest.raises(OtvalUsageError, match=r"0\.json cannot be read"):
        arrays_of(tmp_path)
