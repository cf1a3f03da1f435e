"""Whole runs of the teacher stage: pytest processes, real containers, a real server."""

import json
import signal
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from pytest_otval.core import node_id
from pytest_otval.evidence import files
from selftests.fakes import make_task
from selftests.glue.model_runs import model_project

pytestmark = pytest.mark.integration

KEY = "sk-canary-0123456789"
SOLVE = "mkdir -p /app; echo 1 >/app/answer"
OF_CONTAINERS = ("apptainer", "starter", "busybox", "bash", "fuse", "squashfuse", "slirp4netns")
TEST = "cat /app/answer >/logs/verifier/reward.txt || echo 0 >/logs/verifier/reward.txt"


def teach(project, model, k, *more):
    url = f"--otval-base-url={project.server.url}"
    words = ("datasets/set", "-m", "teacher", f"--otval-teacher={model}", f"--otval-k={k}", url)
    return (*words, "--otval-agent=tools", "--otval-max-steps=8", *more)


def attempts(model, *numbers):
    return [node_id("set", "task", f"teacher[{model}-{number}]") for number in numbers]


@pytest.fixture
def project(real, image, tmp_path):
    profile = '\n[models."keyed"]\nbase_url = "URL"\nserved_name = "unauthorized"\nkey_variable = "CANARY_KEY"\n'
    profile += '[models."keyed-solves"]\nbase_url = "URL"\nserved_name = "solves"\nkey_variable = "CANARY_KEY"\n'
    policies = (
        f"seed = 1\n[[tasks]]\ninstruction = 'the answer'\ncommands = [{json.dumps(SOLVE)}, 'sleep 1']\n"
        "[models.dies]\nfault = 'disconnect'\ntimes = -1\nafter = 1\n"
        "[models.stalls]\nfault = 'hang'\ntimes = -1\nafter = 1\n"
    )
    with model_project(tmp_path, image, policies, profile) as found:
        make_task(tmp_path, test=TEST, files={"instruction.md": "write the answer\n"})
        (tmp_path / "set").rename(tmp_path / "datasets" / "set")
        yield found


def until(condition, process=None, seconds=300.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        assert process is None or process.poll() is None, process.communicate()
        time.sleep(0.05)


@pytest.mark.parametrize("workers", [pytest.param("0", marks=pytest.mark.slow), "2"])
def test_attempts_that_solve_sometimes(project, workers):
    status, text = project.run(*teach(project, "sometimes", 4, "-n", workers, "-v"))
    assert status == 0, text
    found = project.results()
    assert sorted(found) == attempts("sometimes", 0, 1, 2, 3)
    (classes,) = zip(*([line["class"] for line in lines] for lines in found.values()), strict=True)
    assert set(classes) == {"expected", "unsolved"}, classes
    for (line,) in found.values():
        assert (line["score"] == 1) == (line["class"] == "expected")
        kept = dict(files(project.outs[-1], line["evidence"]))
        assert "agent/trajectory.json" in kept
        assert json.loads(kept["result.json"])["agent_info"]["model_info"]["name"] == "sometimes"


@pytest.mark.parametrize(
    ("number", "workers"),
    [(signal.SIGINT, "0"), pytest.param(signal.SIGINT, "2", marks=pytest.mark.slow), (signal.SIGKILL, "2")],
)
def test_interrupted_and_resumed(project, number, workers):
    process = project.start(*teach(project, "solves", 8, "-n", workers))
    until(lambda: len(project.results()) >= 2, process)
    process.send_signal(number)
    text, _ = process.communicate()
    assert 2 <= len(project.results()) < 8, text
    out = project.outs[-1]
    # Workers of a killed controller come to the end of what they do.
    until(
        lambda: not [one for one in psutil.process_iter(["cmdline"]) if str(out) in " ".join(one.info["cmdline"] or ())]
    )
    before = project.results(out)
    done = project.run("-n", workers, resumes=out)
    assert done[0] == 0, done[1]
    found = project.results(out)
    assert sorted(found) == attempts("solves", *range(8))
    for id, lines in found.items():
        answers = [line for line in lines if line["verdict"] != "error"]
        assert len(answers) == 1, id
        if id in before:
            assert answers[0] == before[id][-1]


def test_a_larger_k_later_only_adds(project):
    status, text = project.run(*teach(project, "solves", 1))
    assert status == 0, text
    out, asked = project.outs[-1], project.server.asked()["requests"]
    status, text = project.run("--otval-k=2", resumes=out)
    assert status == 0, text
    assert {id: len(lines) for id, lines in project.results(out).items()} == dict.fromkeys(attempts("solves", 0, 1), 1)
    assert project.server.asked()["requests"] == 2 * asked


def test_a_budget_stops_and_a_larger_one_goes_on(project):
    status, text = project.run(*teach(project, "solves", 4, "--otval-budget-tokens=1200"))
    assert status == 8, text
    assert "stopped: the budget of 1200 tokens is spent" in text
    found = project.results()
    classes = [lines[-1]["class"] for lines in found.values()]
    assert set(classes) == {"expected", "budget-spent"}
    assert all(lines[-1]["score"] is None for lines in found.values() if lines[-1]["class"] == "budget-spent")
    out = project.outs[-1]
    status, text = project.run("--otval-budget-tokens=100000", resumes=out)
    assert status == 0, text
    found = project.results(out)
    assert sorted(found) == attempts("solves", *range(4))
    assert [lines[-1]["class"] for lines in found.values()] == ["expected"] * 4


def test_an_endpoint_that_breaks_off_in_every_answer(project):
    status, text = project.run(*teach(project, "dies", 2))
    assert status == 8, text
    for lines in project.results().values():
        assert [(line["class"], line["score"]) for line in lines] == [("endpoint-failed", None)]
        assert lines[0]["trajectory"]["finish"] == ""


def test_an_endpoint_that_is_killed_in_mid_attempt(project):
    process = project.start(*teach(project, "stalls", 2, "-n", "2"))
    until(lambda: project.server.asked()["requests"] >= 4, process)
    project.server.process.kill()
    text, _ = process.communicate()
    assert process.returncode == 8, text
    assert sorted(project.results()) == attempts("stalls", 0, 1)
    for (line,) in project.results().values():
        assert (line["class"], line["score"]) == ("endpoint-failed", None), text
        assert line["trajectory"]["statistics"]["commands"] == 1


def test_a_contract_is_replayed(project):
    url = f"--otval-base-url={project.server.url}"
    status, text = project.run(*teach(project, "sometimes", 2), "--otval-prepare-contract=c.json")
    assert status == 0, text
    for _ in range(2):
        status, text = project.run("--otval-contract=c.json", url)
        assert status == 0, text
        assert sorted(project.results()) == attempts("sometimes", 0, 1)


def test_no_key_is_left_anywhere(project):
    """Neither that of an endpoint that repeats it, nor in what is started for the run."""
    more = ("--html=report.html", "--self-contained-html", "--junitxml=junit.xml", "-v", "-n", "2")
    words = [one for one in teach(project, "keyed,keyed-solves", 2, *more) if not one.startswith("--otval-base-url")]
    process = project.start(*words, CANARY_KEY=KEY)
    seen = 0
    while process.poll() is None:
        for child in psutil.Process(process.pid).children(recursive=True):
            with suppress(psutil.Error, OSError):
                line = " ".join(child.cmdline())
                assert KEY not in line
                if Path(child.exe()).name.startswith(OF_CONTAINERS):
                    seen += 1
                    assert KEY not in Path(f"/proc/{child.pid}/environ").read_text(errors="replace"), line
        time.sleep(0.02)
    text, _ = process.communicate()
    assert process.returncode in (1, 8), text
    assert seen > 0
    found = project.results()
    assert {lines[-1]["class"] for lines in found.values()} == {"endpoint-failed", "expected"}, text
    assert f"Bearer {KEY}" in project.server.asked()["headers"].values()
    assert KEY not in text
    for lines in found.values():
        for _, content in files(project.outs[-1], lines[-1]["evidence"]):
            assert KEY.encode() not in content
    for path in project.root.rglob("*"):
        if path.is_file() and "images" not in path.parts:
            assert KEY.encode() not in path.read_bytes(), path


def test_an_agent_of_a_plugin(project):
    """The one of docs/plugins.md."""
    more = ("-p", "otval_one_line", "--otval-agent=one-line")
    status, text = project.run(*teach(project, "long", 1), *more)
    assert status == 0, text
    ((line,),) = project.results().values()
    facts = line["trajectory"]
    assert (line["class"], facts["finish"], facts["statistics"]["commands"]) == ("unsolved", "submitted", 1)
    kept = dict(files(project.outs[-1], line["evidence"]))
    assert json.loads(kept["agent/trajectory.json"])["agent"]["name"] == "one-line"
