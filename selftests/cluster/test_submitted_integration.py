"""Runs on a real Slurm of two nodes that see shared storage alone: nothing is lost and nothing counts twice."""

import itertools
import os
import re
import shutil
import signal
import sys
import time
from pathlib import Path

import pytest

from pytest_otval.evidence import files
from selftests.cluster.submitted import Site, ended, inner, results
from selftests.glue.conftest import ids
from selftests.llm.server import Running

pytestmark = pytest.mark.integration

_numbers = itertools.count()


@pytest.fixture(scope="module")
def shared_site(localslurm):
    """One workspace for all tests: the environment is packed once."""
    if not Path(os.path.realpath(sys._base_executable)).is_relative_to("/usr"):
        words = "the nodes see the system's Python alone: ./setup.sh WORKSPACE --python /usr/bin/python3"
        pytest.fail(words) if os.environ.get("CI") else pytest.skip(words)
    return Site.make(localslurm, "site")


@pytest.fixture
def site(shared_site):
    yield shared_site
    for process in shared_site.processes:
        if process.poll() is None:
            inner(process).kill()
            process.communicate()
    shared_site.processes.clear()
    for name in shared_site.root.glob("*.began"):
        name.with_suffix(".go").touch()
        name.unlink()
    user = shared_site.slurm.user
    shared_site.slurm.run("scancel", "--quiet", f"--user={user}")
    shared_site.slurm.until(lambda: not shared_site.slurm.run("squeue", "-h", f"--user={user}").stdout.strip())
    for name in shared_site.root.glob("*.go"):
        name.unlink()


@pytest.fixture
def run(site):
    return site.run(f"run{next(_numbers)}")


def each_once(run, expected):
    """Check that exactly these items have an answer, and one."""
    found = results(run)
    assert sorted(found) == sorted(expected)
    assert {id: len(lines) for id, lines in found.items() if len(lines) != 1} == {}


ALL = ("--otval-wait", "--otval-shards=2", "-v")


def test_a_run_over_two_nodes_reports_as_one_here(site, run):
    bad = "wrong-reward the score is 0"
    site.dataset({"a": {}, "b": {"oracle": bad}, "c": {}, "d": {"noop": "no-solution"}})
    here = ended(site.pytest(f"--otval-out={site.run('here')}", "-v", "-n", "2"))
    there = ended(site.submit(run, *ALL, "--junitxml=there.xml"))
    assert here.status == there.status == 1, there.output + there.errors
    each_once(run, ["datasets/demo/dataset.toml::static", *ids(*"abcd")])

    assert _told(run) == _told(site.run("here"))
    assert "1 failed, 15 passed, 1 n/a in" in here.lines[-1]
    assert "1 failed, 15 passed, 1 n/a in" in there.lines[-1]
    shown = {line.split()[0]: line.split()[1] for line in there.lines if line.startswith("datasets/") and "%" in line}
    assert shown[ids("b", stages=("oracle",))[0]] == "FAILED" and len(shown) == 17
    assert (site.root / "there.xml").read_text().count("<testcase") == 17
    nodes = {line["node"] for line in _shard_lines(run, "began")}
    assert nodes == {"n1", "n2"}


@pytest.mark.parametrize(("step", "build_on"), [("none", "login"), ("srun", "job")])
def test_real_trials_have_the_same_answers_on_nodes(site, run, image, step, build_on):
    names = ("answer-file", "git-repository", "separate-verifier", "running-service")
    site.real_dataset(names, image.files)
    changes = {"trial_step": f'"{step}"', "build_on": f'"{build_on}"'}
    profile = site.profile(f"real-{step}", 'image_sources = ["bootstrap"]\n', **changes)
    words = ("-m", "build or oracle or noop", f"--otval-cluster={profile}")
    there = ended(site.submit(run, *ALL, *words, stub=False, profile=profile))
    here = ended(site.pytest(f"--otval-out={run}-here", *words, "-n", "2", stub=False))
    assert here.status == there.status == 0, there.output + there.errors
    assert _told(run) == _told(run.with_name(f"{run.name}-here"))
    each_once(run, ids(*names, stages=("build", "oracle", "noop")))
    for lines in results(run).values():
        place = lines[0]["evidence"]
        assert lines[0]["stage"] == "build" or dict(files(run, place))
    jobs = {line["job"].partition("_")[0] for line in _shard_lines(run, "began")}
    assert _steps_of(site, jobs) == (step == "srun")


def _steps_of(site, arrays):
    """Whether tasks were launched on a node beside batch scripts, since the first job of these arrays began."""
    logs = [(site.slurm.folder / "log" / f"slurmd.{node}.log").read_text() for node in ("n1", "n2")]
    first = min(int(array) for array in arrays)
    found = [int(job) for log in logs for job in re.findall(r"launch task StepId=(\d+)\.\d", log)]
    return any(job >= first for job in found)


def _told(path):
    return {id: (line[-1]["verdict"], line[-1]["class"], line[-1]["score"]) for id, line in results(path).items()}


@pytest.mark.slow
def test_ten_thousand_tasks_leave_few_files(site, run):
    count = 10_000
    site.dataset({f"task-{number:05}": {} for number in range(count)})
    before = _files_below(site.root / "ws")
    outcome = ended(site.submit(run, "-m", "oracle or noop", "--otval-wait", "-q", "--otval-shards=40"))
    assert outcome.status == 0, outcome.output[-3000:] + outcome.errors
    found = results(run)
    assert len(found) == 2 * count and all(len(lines) == 1 for lines in found.values())
    assert _files_below(site.root / "ws") - before <= 2000
    shutil.rmtree(site.root / "datasets" / "demo")


def _files_below(folder):
    return sum(len(folders) + len(names) for _, folders, names in os.walk(folder))


def _shard_lines(run, event):
    from pytest_otval.ledger import read_ledger

    return [line for line in read_ledger(run) if line["kind"] == "shard" and line["event"] == event]


def test_without_waiting_it_says_how_to_come_back(site, run):
    site.dataset({"a": {"oracle": site.hold("held")}, "b": {}})
    submitted = ended(site.submit(run, "--otval-shards=2"))
    assert submitted.status == 0, submitted.output + submitted.errors
    for command in ("status", "attach", "cancel"):
        assert f"python -m pytest_otval {command} {run}" in submitted.output
    site.wait_until_running("held")
    assert site.command("status", run).status == 1
    site.let_go("held")
    attached = ended(site.attach(run, "-v"))
    assert attached.status == 0, attached.output + attached.errors
    assert "9 passed" in attached.lines[-1]
    each_once(run, ["datasets/demo/dataset.toml::static", *ids("a", "b")])
    assert site.command("status", run).status == 0


def test_the_process_in_front_may_be_killed(site, run):
    site.dataset({"a": {"oracle": site.hold("held")}, "b": {}})
    front = site.submit(run, *ALL)
    site.wait_until_running("held")
    inner(front).kill()
    ended(front)
    site.let_go("held")
    attached = ended(site.attach(run))
    assert attached.status == 0, attached.output + attached.errors
    each_once(run, ["datasets/demo/dataset.toml::static", *ids("a", "b")])
    assert len(site.began("held")) == 1


def test_ctrl_c_detaches_and_cancel_ends_the_jobs(site, run):
    site.dataset({"a": {"oracle": site.hold("held")}, "b": {}})
    front = site.submit(run, *ALL)
    site.wait_until_running("held")
    inner(front).send_signal(signal.SIGINT)
    detached = ended(front)
    assert detached.status == 2 and "the jobs go on without this process" in detached.output
    assert "RUNNING" in site.slurm.states(site.job(run))
    assert site.command("cancel", run).status == 0
    site.slurm.wait_for(site.job(run), "CANCELLED", "COMPLETED")
    attached = ended(site.attach(run))
    assert attached.status == 1 and "items have no answer: their jobs were cancelled" in attached.output
    assert not (run / "arrays" / "1.json").exists()


def strike(site, run, fault):
    """Submit two jobs, let ``fault`` strike while an item of one runs, let it go, and return how the front ended."""
    site.dataset({"a": {"oracle": site.hold("held")}, "b": {}, "c": {}, "d": {}})
    front = site.submit(run, *ALL)
    node = site.wait_until_running("held")
    job = next(line["job"] for line in _shard_lines(run, "began") if line["node"] == node)
    fault(job, node)
    site.wait_until_running("held", times=2)
    site.let_go("held")
    outcome = ended(front)
    assert outcome.status == 0, outcome.output + outcome.errors
    each_once(run, ["datasets/demo/dataset.toml::static", *ids(*"abcd")])
    assert "17 passed" in outcome.lines[-1]
    return outcome


def test_a_job_is_queued_again(site, run):
    strike(site, run, lambda job, node: site.slurm.run("scontrol", "requeue", job))


def test_a_job_is_cancelled_by_somebody(site, run):
    strike(site, run, lambda job, node: site.slurm.run("scancel", job))
    assert (run / "arrays" / "1.json").exists()


def test_a_job_is_preempted(site, run):
    def preempt(job, node):
        urgent = site.slurm.submit("sleep 1", "-p", "urgent", "--exclusive", "-N", "2", "-c", "1")
        site.slurm.wait_for(urgent, "COMPLETED")

    strike(site, run, preempt)


def test_the_controller_is_killed_and_comes_back(site, run):
    site.dataset({"a": {"oracle": site.hold("held")}, "b": {}})
    front = site.submit(run, *ALL)
    site.wait_until_running("held")
    site.slurm.kill_controller()
    time.sleep(10)
    site.slurm.fault("up")
    site.let_go("held")
    outcome = ended(front)
    assert outcome.status == 0, outcome.output + outcome.errors
    each_once(run, ["datasets/demo/dataset.toml::static", *ids("a", "b")])


@pytest.mark.slow
def test_a_node_loses_its_power(site, run):
    lost = []

    def fail(job, node):
        lost.append(node)
        site.slurm.fault("down", node)

    try:
        strike(site, run, fail)
    finally:
        site.slurm.fault("up")
    assert {line["node"] for line in _shard_lines(run, "began")} == {"n1", "n2"}


@pytest.mark.slow
def test_attempts_of_models_on_a_node_that_loses_its_power(site, run, image, tmp_path):
    """Those that it was making are made once more, on the other; each counts once."""
    site.real_dataset(("answer-file",), image.files)
    policies = tmp_path / "policies.toml"
    commands = '["sleep 4", "echo 42 >/app/answer.txt"]'
    policies.write_text(f"[[tasks]]\ninstruction = 'product of 6 and 7'\ncommands = {commands}\n")
    profile = site.profile("models", 'image_sources = ["bootstrap"]\n')
    with Running(policies) as server:
        with (site.root / "clusters" / f"{profile}.toml").open("a") as file:
            file.write(f'\n[models.solves]\nbase_url = "{server.url}"\n')
        words = ("-m", "teacher", "--otval-teacher=solves", "--otval-k=6", "--otval-agent=tools")
        front = site.submit(run, *ALL, *words, f"--otval-cluster={profile}", stub=False, profile=profile)
        site.slurm.until(lambda: server.asked()["requests"] >= 3 or front.poll() is not None)
        try:
            site.slurm.fault("down", _shard_lines(run, "began")[0]["node"])
            outcome = ended(front)
        finally:
            site.slurm.fault("up")
    assert outcome.status == 0, outcome.output + outcome.errors
    each_once(run, ids("answer-file", stages=[f"teacher[solves-{number}]" for number in range(6)]))
    assert {lines[0]["class"] for lines in results(run).values()} == {"expected"}


def test_a_job_takes_too_much_memory(site, run):
    # 4 cores of a node with 1.6 GB: 800 MB for the two of a job.
    profile = site.profile("small", memory_mb="1600")
    site.dataset({"a": {"oracle": f"eat-once {site.root / 'eaten'}"}, "b": {}, "c": {}, "d": {}})
    outcome = ended(site.submit(run, *ALL, profile=profile))
    assert outcome.status == 0, outcome.output + outcome.errors
    each_once(run, ["datasets/demo/dataset.toml::static", *ids(*"abcd")])
    ends = [line for line in _shard_lines(run, "began") if line["shard"] == _shard_of(run, "a")]
    assert len(ends) == 2 and site.began("eaten") == []


def _shard_of(run, task):
    """Return the shard that has a task's items."""
    from pytest_otval.cluster.journal import ATTEMPT

    for path in (run / "ledger").glob("shard-*.jsonl"):
        if f"/tasks/{task}/" in path.read_text():
            return int(ATTEMPT.fullmatch(path.stem)["shard"])
    raise AssertionError(task)


@pytest.mark.slow
def test_the_disk_of_a_node_is_full(site, run):
    site.dataset({name: {} for name in "abcd"})
    site.slurm.fault("fill", "n1")
    try:
        outcome = ended(site.submit(run, *ALL))
    finally:
        site.slurm.fault("free", "n1")
    assert outcome.status == 0, outcome.output + outcome.errors
    each_once(run, ["datasets/demo/dataset.toml::static", *ids(*"abcd")])
    assert (run / "arrays" / "1.json").exists()
    assert any("No space left" in log.read_text() for log in (run / "logs").glob("*.out"))


@pytest.mark.slow
def test_time_limits_cut_nothing(site, run):
    site.dataset({f"t{number}": {"oracle": "slow 9"} for number in range(12)})
    outcome = ended(site.submit(run, "--otval-wait", "--otval-shards=1", "--otval-time=00:02:00"))
    assert outcome.status == 0, outcome.output + outcome.errors
    each_once(run, ["datasets/demo/dataset.toml::static", *ids(*(f"t{number}" for number in range(12)))])
    # The last answer comes before the job writes that it ends.
    site.slurm.until(lambda: len(list(_shard_lines(run, "ended"))) == len(list(_shard_lines(run, "began"))))
    ends = [(line["fault"], line["why"].partition(":")[0]) for line in _shard_lines(run, "ended")]
    assert ends[0] == ("slurm", "its time was up") and ends[-1] == ("", "")
    assert not (run / "arrays" / "1.json").exists(), "the job queued itself again"


def test_what_can_never_run_is_told(site, run):
    profile = site.profile("large", cores="16")
    site.dataset({"a": {}})
    outcome = ended(site.submit(run, "--otval-wait", "--otval-cpus=16", profile=profile))
    assert outcome.status == 4 and "never starts the jobs" in outcome.errors, outcome.output + outcome.errors
    assert set(site.slurm.states(site.job(run))) == {"CANCELLED"}


def test_a_dry_run_submits_nothing(site, run):
    site.dataset({"a": {}, "b": {}})
    outcome = ended(site.submit(run, "--otval-dry-run", "--otval-wait", "--otval-shards=2"))
    assert outcome.status == 0 and "nothing is submitted" in outcome.output, outcome.output + outcome.errors
    assert "#SBATCH --array=0-1%2" in (run / "submission.sh").read_text()
    assert sorted(path.name for path in run.iterdir()) == [
        "contract.json",
        "request.json",
        "run.json",
        "shards.json",
        "submission.sh",
    ]


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["-n", "2"], "leave it out; jobs have --otval-cpus"),
        (["--otval-cpus=8"], "at most 4"),
        (["--otval-partition=none"], "no partition 'none'"),
        (["--otval-time=5"], "is no time"),
    ],
)
def test_what_cannot_be_submitted_is_refused_in_one_line(site, run, words, error):
    site.dataset({"a": {}})
    outcome = ended(site.submit(run, *words))
    assert outcome.status == 4
    assert error in outcome.errors.strip().splitlines()[-1]


def test_an_item_that_kills_its_jobs_is_found_and_given_up(site, run):
    site.dataset({"a": {"oracle": f"kill-job {site.root / 'killer'}"}, "b": {}, "c": {}, "d": {}})
    outcome = ended(site.submit(run, *ALL))
    assert outcome.status == 8, outcome.output + outcome.errors
    each_once(run, ["datasets/demo/dataset.toml::static", *ids(*"abcd")])
    (crashed,) = [lines[0] for lines in results(run).values() if lines[0]["verdict"] != "pass"]
    assert (crashed["id"], crashed["class"]) == (*ids("a", stages=("oracle",)), "crashed")
    # Twice among others, then alone.
    assert len(site.began("killer")) == 3
