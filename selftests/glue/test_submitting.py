"""The pytest face of submitted runs, where there is no Slurm."""

import json
import shutil
from dataclasses import asdict
from pathlib import Path

import pytest

from pytest_otval.cluster import states, submission
from pytest_otval.cluster.request import Models, Request, read_request, write_request
from pytest_otval.cluster.run_commands import attach_words
from pytest_otval.cluster.shards import write_plan
from pytest_otval.cluster.submission import Array, Element
from pytest_otval.cluster.watch import cancel
from pytest_otval.contract.file import read_contract
from pytest_otval.llm.budget import Budget
from pytest_otval.llm.chat import Usage
from pytest_otval.llm.weights import RECORD, Weights
from selftests.glue.conftest import Outcome, ids

pytest_plugins = ["pytester"]

CLUSTERS = Path(__file__).parents[2] / "clusters"


@pytest.fixture
def site(project):
    """A project that has the profile of the local Slurm."""
    (project.root / "clusters").mkdir()
    for name in ("local", "localslurm"):
        shutil.copy(CLUSTERS / f"{name}.toml", project.root / "clusters")
    return project


def dry(site, *words):
    return site.run("--otval-submit=localslurm", "--otval-dry-run", *(words or ("datasets/demo",)))


def test_a_dry_run_writes_what_would_be_submitted(site):
    site.dataset(tasks={name: {} for name in "abcd"})
    outcome = dry(site, "datasets/demo", "--otval-shards=2", "--otval-cpus=3", "--otval-time=01:00:00")
    assert outcome.status == 0, outcome.lines + outcome.errors
    run = site.runs[-1]
    script = (run / "submission.sh").read_text()
    for line in ("--array=0-1%2", "--cpus-per-task=3", "--time=60", "--signal=B:USR2@60", "--export=NONE"):
        assert f"#SBATCH {line}\n" in script
    shards = json.loads((run / "shards.json").read_text())["shards"]
    assert sorted(number for shard in shards for number in shard) == list(range(17))
    assert not (run / "ledger").exists() and any("nothing is submitted" in line for line in outcome.lines)


def test_a_contract_says_what_the_command_line_does_not(site):
    site.dataset()
    contract = site.root / "c.json"
    words = ("--otval-submit=localslurm", "--otval-cpus=2", "--otval-time=00:30:00", "--otval-shards=2")
    assert site.run(f"--otval-prepare-contract={contract}", *words, "datasets/demo").status == 0
    outcome = dry(site, f"--otval-contract={contract}", "--otval-time=00:20:00")
    assert outcome.status == 0, outcome.lines + outcome.errors
    script = (site.runs[-1] / "submission.sh").read_text()
    assert "--cpus-per-task=2\n" in script and "--time=20\n" in script and "--array=0-1%2\n" in script


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--otval-fix"], "--otval-fix is of runs on this machine"),
        (["--otval-keep"], "--otval-keep is of runs on this machine"),
        (["--otval-reuse"], "--otval-reuse is of runs on this machine"),
        (["-m", "teacher", "--otval-teacher=m", "--otval-base-url=x"], "--otval-base-url x must be http(s)://HOST"),
        (["-m", "teacher", "--otval-teacher=m"], "the model m has no base_url in the cluster profile"),
        (["--otval-shards=20000"], "the profile allows 10000 jobs"),
        (["--otval-cpus=99"], "at most 4"),
        (["-k", "nothing"], "none is selected"),
    ],
)
def test_what_cannot_be_submitted_is_refused(site, words, error):
    site.dataset()
    assert error in dry(site, "datasets/demo", *words).refusal


def test_jobs_are_told_of_models(site):
    site.dataset()
    words = ("--otval-base-url=http://host:80/v1", "--otval-budget-tokens=5")
    assert dry(site, "datasets/demo", "-m", "teacher", "--otval-teacher=m", "--otval-agent=tools", *words).status == 0
    assert read_request(site.runs[-1]).models.options() == list(words)


KEYED = """
[models.m]
base_url = "http://host/v1"
key_variable = "SITE_API_KEY"
[models.other]
base_url = "http://host/v1"
key_variable = "OTHER_API_KEY"
"""


def test_keys_of_the_models_that_are_asked_go_to_jobs(site, monkeypatch):
    site.dataset()
    with (site.root / "clusters" / "localslurm.toml").open("a") as file:
        file.write(KEYED)
    words = ("datasets/demo", "-m", "teacher", "--otval-teacher=m", "--otval-agent=tools")
    monkeypatch.delenv("SITE_API_KEY", raising=False)
    assert dry(site, *words).refusal.startswith("SITE_API_KEY is not set")
    monkeypatch.setenv("SITE_API_KEY", "sk-secret-of-the-site")
    assert dry(site, *words).status == 0
    run = site.runs[-1]
    assert read_request(run).models.key_variables == ("SITE_API_KEY",)
    assert "#SBATCH --export=SITE_API_KEY\n" in (run / "submission.sh").read_text()
    assert not [path for path in run.rglob("*") if path.is_file() and "sk-secret" in path.read_text()]
    # It goes to no other address.
    assert dry(site, *words, "--otval-base-url=http://other/v1").status == 0
    assert read_request(site.runs[-1]).models.key_variables == ()


def test_models_that_jobs_serve(site):
    site.dataset()
    with (site.root / "clusters" / "localslurm.toml").open("a") as file:
        file.write('[models.m]\nrepository = "org/m"\n[models.m.serve]\nin_job = true\ngpus = 0\n')
    words = ("datasets/demo", "-m", "teacher", "--otval-teacher=m", "--otval-agent=tools")
    refusal = dry(site, *words).refusal
    assert "org/m is not there in" in refusal and "run `python -m pytest_otval models download org/m`" in refusal
    assert "start `models serve`, and give" in site.run(*words, "--otval-cluster=localslurm").refusal
    folder = site.workspace / "models" / f"org--m@{'0' * 40}"
    folder.mkdir(parents=True)
    (folder / RECORD).write_text(json.dumps(asdict(Weights("org/m", "0" * 40, whole=True))))
    assert dry(site, *words).status == 0
    request = read_request(site.runs[-1])
    assert (request.models.served, request.cpus) == (("m",), 2)
    # Where it is asked elsewhere, none does.
    assert dry(site, *words, "--otval-base-url=http://host/v1").status == 0
    assert read_request(site.runs[-1]).models.served == ()


@pytest.mark.parametrize("name", ["a,b", "50%", "with space", "a\x1b[31m", "$(touch x)"])
def test_run_folders_that_slurm_would_read_otherwise_are_refused(site, name):
    site.dataset()
    folder = site.workspace / "runs" / name
    outcome = dry(site, "datasets/demo", f"--otval-out={folder}")
    assert not folder.exists()
    assert "letters, digits and . _ + - / alone" in outcome.refusal and "\x1b" not in outcome.refusal


def test_a_profile_without_slurm_is_refused(site):
    site.dataset()
    outcome = site.run("--otval-submit=local", "datasets/demo")
    assert "the profile 'local' has no [slurm]" in outcome.refusal


def test_a_run_folder_is_submitted_once(site):
    site.dataset()
    assert dry(site).status == 0
    before = (site.runs[-1] / "run.json").read_text()
    again = site.run("--otval-submit=localslurm", "datasets/demo", f"--otval-out={site.runs[-1]}")
    assert "was submitted before" in again.refusal
    assert (site.runs[-2] / "run.json").read_text() == before


@pytest.fixture
def submitted(site, monkeypatch):
    """A run whose jobs have answered as the stub does; nobody asks the stub any more."""
    site.dataset(tasks={"a": {}, "b": {"oracle": "wrong-reward too low"}, "c": {"noop": "no-solution"}})
    contract = site.root / "c.json"
    assert site.run(f"--otval-prepare-contract={contract}", "datasets/demo").status == 0
    here = site.run("datasets/demo", "-v")
    run = site.workspace / "runs" / "submitted"
    (run / "ledger").mkdir(parents=True)
    shutil.copy(contract, run / "contract.json")
    shutil.copy(site.runs[-1] / "run.json", run)
    shutil.copy(site.runs[-1] / "ledger" / "main.jsonl", run / "ledger" / "shard-0.7_0.0.jsonl")
    write_request(run, Request("localslurm", "main", 2, 3600, 60))
    write_plan(run, [list(range(13))])
    submission._write(run, Array(0, (Element(0),), 0.0, "7"))
    for wanted in site.root.rglob("wanted"):
        for name in ("static", "build", "oracle", "noop"):
            (wanted / name).write_text("raise it was asked")
    monkeypatch.setattr(states, "_run", lambda words: pytest.fail(f"{words} was run"))
    monkeypatch.setattr(states.Slurm, "states", lambda self, arrays: {})
    return run, here


def attach(site, run, *words):
    result = site.pytester.runpytest_inprocess("-p", "otval_stub", *attach_words(run), *words)
    return int(result.ret), result.outlines


def shown(lines):
    return sorted(tuple(line.split()[:2]) for line in lines if line.startswith("datasets/") and "%]" in line)


def test_answers_of_jobs_are_ordinary_reports(site, submitted):
    run, here = submitted
    status, lines = attach(site, run, "-v", "--junitxml=there.xml")
    assert status == here.status == 1
    assert shown(lines) == shown(here.lines) and len(shown(lines)) == 13
    assert "1 failed, 11 passed, 1 n/a in" in lines[-1]
    assert (site.root / "there.xml").read_text().count("<testcase") == 13
    assert not list((run / "ledger").glob("main*")), "answers were written once more"


def test_half_a_run_is_not_green(site, submitted):
    run, _ = submitted
    file = run / "ledger" / "shard-0.7_0.0.jsonl"
    lines = [line for line in file.read_text().splitlines(keepends=True) if '"verdict": "pass"' in line]
    file.write_text("".join(lines[:5]))
    states_cancel, states.cancel = states.cancel, lambda run, arrays: None
    try:
        cancel(run, "cancelled by a test")
    finally:
        states.cancel = states_cancel
    status, shown_lines = attach(site, run)
    assert status == 1
    assert any("8 items have no answer: their jobs were cancelled" in line for line in shown_lines)


@pytest.fixture
def resumable(site, submitted):
    """One of the tasks as they are now."""
    run, _ = submitted
    contract = site.root / "now.json"
    assert site.run(f"--otval-prepare-contract={contract}", "datasets/demo").status == 0
    shutil.copy(contract, run / "contract.json")
    return run


def resume(site, run, *words):
    argv = ("-p", "otval_stub", "--otval-submit=localslurm", f"--otval-resume={run}", "datasets/demo", *words)
    result = site.pytester.runpytest_inprocess(*argv)
    return Outcome(int(result.ret), result.outlines, result.errlines)


def test_a_run_goes_on_with_what_was_an_error_and_nothing_else(site, resumable, monkeypatch):
    run = resumable
    file = run / "ledger" / "shard-0.7_0.0.jsonl"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    results = [line for line in lines if line["kind"] == "result"]
    lost, failed = results[3]["id"], results[4]
    failed |= {"verdict": "error", "class": "endpoint-failed", "headline": "down"}
    file.write_text("".join(f"{json.dumps(line)}\n" for line in results if line["id"] != lost))
    (run / "cancelled").write_text("cancelled\n")
    again = []

    def sent(run, request, elements, resumes):
        again.extend(elements)
        return Array(1, tuple(elements), 0.0, "8", resumes=resumes)

    monkeypatch.setattr(submission, "submit", sent)
    assert (
        "1 differences from what it ran, such as settings: rules" in resume(site, run, "--otval-rules=strict").refusal
    )
    assert "leave --otval-resume out" in resume(site, run, "--otval-dry-run").refusal
    outcome = resume(site, run)
    assert outcome.status == 0, outcome.lines + outcome.errors
    numbers = [item.id for item in read_contract(run / "contract.json").items()]
    assert again == [Element(0, tuple(sorted((numbers.index(lost), numbers.index(failed["id"])))))]
    assert not (run / "cancelled").exists()


def test_a_run_whose_jobs_are_not_over_does_not_go_on(site, resumable, monkeypatch):
    run = resumable
    live = {(0, 0): states.JobState("7_0", 0, 0, "RUNNING", "n1", "None")}
    monkeypatch.setattr(states.Slurm, "states", lambda self, arrays: live)
    refusal = resume(site, run).refusal
    assert refusal.endswith("its jobs are not over: `python -m pytest_otval attach` waits for them, `cancel` ends them")
    assert "was not submitted" in resume(site, site.runs[-2]).refusal


def test_a_spent_budget_is_told_as_here(site, submitted):
    run, _ = submitted
    write_request(run, Request("localslurm", "main", 2, 3600, 60, models=Models(budget_tokens=5)))
    Budget(run).spend("m", Usage(7))
    file = run / "ledger" / "shard-0.7_0.0.jsonl"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    results = [line for line in lines if line["kind"] == "result" and line["verdict"] == "pass"][:5]
    spent = {"verdict": "error", "class": "budget-spent", "headline": "the budget of 5 tokens is spent"}
    results[1] |= spent
    file.write_text("".join(f"{json.dumps(line)}\n" for line in results))
    status, shown_lines = attach(site, run)
    assert status == 8
    assert "8 items have no answer: the budget of 5 tokens is spent: 7 were used" in shown_lines
    assert "stopped: the budget of 5 tokens is spent; 8 items were not run" in shown_lines
    assert not (run / "cancelled").exists()


def test_a_stage_that_fails_in_a_job_stops_with_x(site, submitted):
    run, _ = submitted
    status, lines = attach(site, run, "-x")
    assert status == 1 and "1 failed" in lines[-1]
    assert any("the jobs go on without this process" in line for line in lines)
    assert ids("b", stages=("oracle",))[0] in "\n".join(lines)
