"""The main job as a user starts it: pytest on a dataset, with real containers, judged by its ledger and exit status."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import tomli

from pytest_otval.ledger import read_ledger, read_run
from pytest_otval.sandbox.apptainer import FLAVOURS

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[1]
DATA = Path(__file__).parent / "data"


def main_job(out: Path, *args: str, **env: str) -> tuple[int, dict[str, dict]]:
    """Run pytest; return its exit status and the result lines by task and stage."""
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--otval-out", str(out), *args]
    done = subprocess.run(argv, cwd=ROOT, env={**os.environ, **env}, capture_output=True, text=True, check=False)
    lines = [line for line in read_ledger(out) if line["kind"] == "result"] if out.exists() else []
    print(done.stdout[-4000:], done.stderr[-2000:])
    return done.returncode, {line["id"].partition("/tasks/")[2].replace("/task.toml", ""): line for line in lines}


def make_task(folder: Path, dockerfile: str) -> Path:
    """Make a sound task over a Dockerfile."""
    for name in ("environment", "solution", "tests"):
        (folder / name).mkdir(parents=True)
    (folder / "task.toml").write_text('[environment]\nnetwork_mode = "no-network"\n')
    (folder / "instruction.md").write_text("Write 42 to /answer.\n")
    (folder / "environment" / "Dockerfile").write_text(dockerfile)
    (folder / "solution" / "solve.sh").write_text("#!/bin/sh\necho 42 > /answer\n")
    grade = 'if [ "$(cat /answer)" = 42 ]; then r=1; else r=0; fi\necho $r > /logs/verifier/reward.txt\n'
    (folder / "tests" / "test.sh").write_text("#!/bin/sh\n" + grade)
    return folder


def test_each_twin_fails_in_its_own_way_and_no_other(tmp_path):
    expected = tomli.loads((DATA / "twins" / "expected.toml").read_text())["tasks"]
    status, found = main_job(tmp_path / "run", "selftests/data/twins")
    assert status == 1
    stages = ("static", "build", "oracle", "noop")
    wanted = {f"{task}::{stage}": answers[stage] for task, answers in expected.items() for stage in stages}
    assert {name: line["class"] for name, line in found.items() if name} == wanted


def test_owners_are_kept_or_the_line_that_needs_them_is_named(tmp_path):
    status, found = main_job(tmp_path / "run", "selftests/data/owners")
    assert status == 0
    if FLAVOURS[read_run(tmp_path / "run")["flavour"]].maps_uids:
        assert {line["verdict"] for line in found.values()} == {"pass"}
        return
    assert found["declared-user::build"]["headline"].startswith("environment/Dockerfile:2: ")
    assert found["chown-in-solution::oracle"]["headline"] == "solution/solve.sh:3: chown"
    assert {line["class"] for name, line in found.items() if name.endswith("oracle")} == {"needs-uid-mapping"}


def test_full_scratch_is_no_answer_about_the_task(tmp_path, small_scratch):
    task = make_task(tmp_path / "set" / "fills", "FROM debian:bookworm-slim\nRUN head -c 60M /dev/urandom > /big\n")
    status, found = main_job(tmp_path / "run", str(task), OT_SCRATCH=small_scratch)
    assert status == 8
    assert {name: line["class"] for name, line in found.items()} == {
        "fills::static": "expected",
        "fills::build": "host-disk-full",
        "fills::oracle": "host-disk-full",
        "fills::noop": "host-disk-full",
    }


def test_without_apptainer_only_static_answers(tmp_path):
    programs = tmp_path / "bin"
    programs.mkdir()
    for folder in ("/usr/local/bin", "/usr/bin", "/bin"):
        for program in Path(folder).iterdir():
            link = programs / program.name
            if program.name not in ("apptainer", "singularity") and not link.exists():
                link.symlink_to(program)
    task = make_task(tmp_path / "set" / "plain", "FROM debian:bookworm-slim\n")
    status, found = main_job(tmp_path / "run", str(task), PATH=str(programs))
    assert status == 8
    assert [line["class"] for line in found.values()] == ["expected", *["missing-tool"] * 3]
    assert "apptainer is not on PATH" in found["plain::oracle"]["headline"]


def test_image_nobody_has_is_no_answer_about_the_task(tmp_path):
    task = make_task(tmp_path / "set" / "plain", "FROM registry.invalid/nothing:1\n")
    status, found = main_job(tmp_path / "run", str(task), "-m", "build")
    assert status == 8
    assert found["plain::build"]["class"] == "base-unavailable"


def test_offline_run_says_what_needs_a_network(tmp_path):
    task = make_task(tmp_path / "set" / "online", "FROM debian:bookworm-slim\n")
    (task / "task.toml").write_text('[environment]\nnetwork_mode = "public"\n')
    status, found = main_job(tmp_path / "run", str(task), "--otval-network", "none")
    assert status == 0
    assert [line["class"] for line in found.values()] == ["expected", "expected", "needs-network", "needs-network"]


def test_parallel_run_gives_the_same_answers(tmp_path):
    tasks = ["datasets/demo/tasks/answer-file", "datasets/demo/tasks/port-a", "datasets/demo/tasks/port-b"]
    _, alone = main_job(tmp_path / "alone", *tasks)
    status, together = main_job(tmp_path / "together", *tasks, "-n", "2")
    assert status == 0
    assert {name: line["class"] for name, line in together.items()} == {n: line["class"] for n, line in alone.items()}
    assert json.loads((tmp_path / "together" / "run.json").read_text())["flavour"]
