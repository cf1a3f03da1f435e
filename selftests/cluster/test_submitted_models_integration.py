"""Attempts of models in jobs of a real Slurm: budgets, addresses and keys reach them, and nothing counts twice."""

import json
import os
import shutil
import signal
from dataclasses import asdict

import psutil
import pytest

from pytest_otval.ledger import read_ledger
from pytest_otval.llm.budget import FOLDER, Budget
from pytest_otval.llm.weights import RECORD, Weights
from selftests.cluster.submitted import PYTEST, REPOSITORY, each_once, ended, results, shard_lines
from selftests.glue.conftest import ids
from selftests.llm.server import Running

pytestmark = pytest.mark.integration

ALL = ("--otval-wait", "--otval-shards=2", "-v")
TEACH = ("-m", "teacher", "--otval-teacher=solves", "--otval-agent=tools")


@pytest.fixture
def policies(tmp_path):
    """Make a file of policies: what the tests' model does about the task."""

    def make(*commands):
        file = tmp_path / "policies.toml"
        file.write_text(f"[[tasks]]\ninstruction = 'product of 6 and 7'\ncommands = {list(commands)}\n")
        return file

    return make


SOLVE = "echo 42 >/app/answer.txt"


def attempts(count):
    return ids("answer-file", stages=[f"teacher[solves-{number}]" for number in range(count)])


def classes(run):
    return [line["class"] for lines in results(run).values() for line in lines]


def test_a_budget_is_of_all_jobs_and_a_larger_one_lets_the_run_go_on(site, run, image, policies):
    site.real_dataset(("answer-file",), image.files)
    profile = site.profile("models", 'image_sources = ["bootstrap"]\n')
    with Running(policies("sleep 1", SOLVE)) as server:
        words = (*TEACH, "--otval-k=12", f"--otval-base-url={server.url}", f"--otval-cluster={profile}")
        outcome = ended(site.submit(run, *ALL, *words, "--otval-budget-tokens=2000", stub=False, profile=profile))
        assert outcome.status == 8, outcome.output + outcome.errors
        first, spent = classes(run), Budget(run).spent()
        assert {"budget-spent"} <= set(first) <= {"expected", "budget-spent"}
        # An attempt without money ends at once: others may do so before the run is stopped.
        left = 12 - len(first)
        assert not left or f"{left} items have no answer: the budget of 2000 tokens is spent" in outcome.output
        assert spent.tokens >= 2000 and len(list((run / FOLDER).iterdir())) <= 2
        ends = {line["why"].partition(" is spent:")[0] for line in shard_lines(run, "ended")}
        assert ends <= {"", "the budget of 2000 tokens"}
        assert not (run / "arrays" / "1.json").exists()

        again = ended(site.start(PYTEST, f"--otval-resume={run}", "--otval-budget-tokens=100000"))
    assert again.status == 0, again.output + again.errors
    assert "12 passed" in again.lines[-1]
    found = results(run)
    assert sorted(found) == sorted(attempts(12))
    assert all([line["class"] for line in lines].count("expected") == 1 for lines in found.values())
    assert sum(map(len, found.values())) == len(first) + 12 - first.count("expected")
    assert Budget(run).spent().answers == spent.answers + 3 * (12 - first.count("expected"))


KEY = "sk-secret-0123456789abcdef"


def test_a_key_reaches_jobs_and_is_seen_nowhere(site, run, image, policies):
    site.real_dataset(("answer-file",), image.files)
    profile = site.profile("models", 'image_sources = ["bootstrap"]\n')
    with Running(policies(SOLVE)) as server:
        with (site.root / "clusters" / f"{profile}.toml").open("a") as file:
            file.write(f'\n[models.solves]\nbase_url = "{server.url}"\nkey_variable = "SITE_API_KEY"\n')
        words = (*ALL, *TEACH, f"--otval-cluster={profile}")
        missing = ended(site.submit(run, *words, stub=False, profile=profile))
        assert missing.status == 4 and "SITE_API_KEY is not set" in missing.errors

        site.variables["SITE_API_KEY"] = KEY
        # As long as it answers nothing the job runs.
        server.process.send_signal(signal.SIGSTOP)
        front = site.submit(run, *words, stub=False, profile=profile)
        site.slurm.until(lambda: _started(run) or front.poll() is not None)
        said = [site.slurm.run(*words).stdout for words in _questions(site.job(run))]
        lines = [process.info["cmdline"] or [""] for process in psutil.process_iter(["cmdline"])]
        server.process.send_signal(signal.SIGCONT)
        outcome = ended(front)
        assert outcome.status == 0, outcome.output + outcome.errors
        assert server.asked()["headers"]["authorization"] == f"Bearer {KEY}"
    assert "--export=SITE_API_KEY\n" in said[-1]
    # runuser is the test's own way to the user.
    shown = [" ".join(words) for words in lines if words[0] != "runuser"]
    assert not [text for text in (*said, *shown, outcome.output, outcome.errors) if KEY in text]
    logs = [path for path in (site.slurm.folder / "log").iterdir() if os.access(path, os.R_OK)]
    kept = [path for path in (*run.rglob("*"), *logs) if path.is_file()]
    assert kept and not [path for path in kept if KEY.encode() in path.read_bytes()]


def _questions(job):
    """What a user of the cluster may ask about a job."""
    batch_script = ("scontrol", "write", "batch_script", f"{job}_0", "-")
    return ("scontrol", "show", "job", "-dd", job), ("squeue", "-j", job, "-o", "%all"), batch_script


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
            site.slurm.fault("down", shard_lines(run, "began")[0]["node"])
            outcome = ended(front)
        finally:
            site.slurm.fault("up")
    assert outcome.status == 0, outcome.output + outcome.errors
    each_once(run, ids("answer-file", stages=[f"teacher[solves-{number}]" for number in range(6)]))
    assert {lines[0]["class"] for lines in results(run).values()} == {"expected"}


@pytest.fixture
def serving(site, image):
    """Make a profile by which each job serves a model itself, with the tests' server."""
    site.real_dataset(("answer-file",), image.files)
    plugins = site.root / "plugins"
    (plugins / "selftests" / "llm").mkdir(parents=True, exist_ok=True)
    (plugins / "held.py").write_text(HELD)
    for module in (REPOSITORY / "selftests" / "llm").glob("*.py"):
        shutil.copy(module, plugins / "selftests" / "llm")
    weights = Weights("org/m", "0" * 40, whole=True)
    folder = site.root / "ws" / "models" / weights.name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RECORD).write_text(json.dumps(asdict(weights)))

    def make(*words):
        """``words`` start the server; none: as they should."""
        (site.root / "policies.toml").write_text(
            f"[[tasks]]\ninstruction = 'product of 6 and 7'\ncommands = {[SOLVE]}\n"
        )
        well = ("env", f"PYTHONPATH={plugins}", "python", str(plugins / "held.py"), str(site.root / "model.go"))
        command = list(words or (*well, "--port", "{port}", "--policies", str(site.root / "policies.toml")))
        profile = site.profile("serving", 'image_sources = ["bootstrap"]\n')
        with (site.root / "clusters" / f"{profile}.toml").open("a") as file:
            file.write(f'\n[models.solves]\nrepository = "org/m"\n[models.solves.serve]\ncommand = {command}\n')
            file.write("in_job = true\ngpus = 0\n")
        site.own()
        return profile

    yield make
    # The front is content with the last answer, and the job ends after it.
    site.slurm.until(lambda: not _servers(site))


HELD = """import sys, time
from pathlib import Path
from selftests.llm import server

class Held(server.Handler):
    def answer(self, *words):
        while not Path(GO).exists():
            time.sleep(0.1)
        super().answer(*words)

GO, server.Handler = sys.argv.pop(1), Held
server.main()
"""
"""The tests' server, which answers once there is a file."""


def _servers(site):
    lines = [(one, one.info["cmdline"] or []) for one in psutil.process_iter(["cmdline"])]
    return [one for one, words in lines if str(site.root / "policies.toml") in words]


def _kill_a_server(site, job):
    _servers(site)[0].kill()


def _cancel(site, job):
    site.slurm.run("scancel", job)


def _queue_again(site, job):
    site.slurm.run("scontrol", "requeue", job)


@pytest.mark.parametrize(
    ("fault", "whose"),
    [
        (_kill_a_server, "server"),
        pytest.param(_cancel, "slurm", marks=pytest.mark.slow),
        pytest.param(_queue_again, "slurm", marks=pytest.mark.slow),
    ],
)
def test_jobs_serve_their_model_and_what_was_tried_without_it_is_made_again(site, run, serving, fault, whose):
    profile = serving()
    words = (*ALL, *TEACH, "--otval-k=4", f"--otval-cluster={profile}")
    front = site.submit(run, *words, stub=False, profile=profile)
    site.slurm.until(lambda: _started(run) or front.poll() is not None)
    assert _servers(site), ended(front)
    fault(site, shard_lines(run, "began")[0]["job"])
    site.let_go("model")
    outcome = ended(front)
    assert outcome.status == 0, outcome.output + outcome.errors
    each_once(run, attempts(4))
    assert set(classes(run)) == {"expected"}
    ends = [line for line in shard_lines(run, "ended") if line["fault"]]
    assert [line["fault"] for line in ends] == [whose]
    assert whose != "server" or ends[0]["why"].startswith("the server of solves: it was killed by signal 9: ")


def _started(run):
    return [line["id"] for line in read_ledger(run) if line["kind"] == "started"]


@pytest.mark.slow
def test_where_no_server_comes_up_nothing_is_scored_and_the_run_goes_on_once_one_does(site, run, serving):
    profile = serving("sh", "-c", "echo no memory left on the device; exit 3")
    words = (*ALL, *TEACH, "--otval-shards=1", "--otval-k=3", f"--otval-cluster={profile}")
    outcome = ended(site.submit(run, *words, stub=False, profile=profile))
    assert outcome.status == 8, outcome.output + outcome.errors
    each_once(run, attempts(3))
    headline = "3 jobs one after the other answered nothing: the server of solves: it ended with status 3"
    for (line,) in results(run).values():
        assert (line["class"], line["score"]) == ("endpoint-failed", None) and line["headline"].startswith(headline)
    assert any("no memory left on the device" in log.read_text() for log in (run / "logs").glob("*.out"))

    serving()
    site.let_go("model")
    again = ended(site.start(PYTEST, f"--otval-resume={run}"))
    assert again.status == 0 and "3 passed" in again.lines[-1], again.output + again.errors
    assert sorted(classes(run)) == ["endpoint-failed"] * 3 + ["expected"] * 3
