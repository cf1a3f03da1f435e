"""Export for ``harbor view``: what lies where, and runs that are not what they should be."""

import json
import os
from pathlib import Path

import pytest

from pytest_otval.core import OtvalUsageError
from pytest_otval.evidence import Archive
from pytest_otval.report.harbor import export
from selftests.report.ledgers import line, make_run
from selftests.trial.harbor_cases import cases

RESULTS = {name: case["ours"] for name, case in cases().items() if case["model"] == "TrialResult"}


def evidence(folder: Path, result, **files: bytes) -> Path:
    """Write the evidence folder of a trial."""
    texts = {
        "result.json": json.dumps(result).encode(),
        **{name.replace("__", "/"): data for name, data in files.items()},
    }
    for name, data in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def trial(place, number=0, task="a"):
    return line(task, kind="trial", id=f"datasets/demo/tasks/{task}/task.toml::oracle#oracle/{number}", evidence=place)


@pytest.fixture
def run(tmp_path):
    """Make a run whose trials left these evidence folders."""

    def make(*folders: Path) -> Path:
        archive = Archive(tmp_path / "run", "main")
        places = [archive.add(folder, f"demo/t{number}/oracle") for number, folder in enumerate(folders)]
        archive.close()
        lines = [one for number, place in enumerate(places) for one in (trial(place, number), line(evidence=place))]
        return make_run(tmp_path / "run", *lines)

    return make


def read(path: Path):
    return json.loads(path.read_text())


def test_job_folder(tmp_path, run, capsys):
    noop, oracle = RESULTS["noop"], RESULTS["verifier-timeout"]
    logs = {"verifier__test-stdout.txt": b"words\n", "verifier__reward.txt": b"0"}
    made = run(evidence(tmp_path / "one", noop, **logs), evidence(tmp_path / "two", oracle, agent__oracle=b"x"))
    assert export(made, tmp_path / "jobs" / "mine") == 0
    job = tmp_path / "jobs" / "mine"
    assert set(os.listdir(job)) == {"config.json", "result.json", noop["trial_name"], oracle["trial_name"]}
    first = job / noop["trial_name"]
    assert (first / "verifier" / "test-stdout.txt").read_text() == "words\n"
    assert sorted(os.listdir(first)) == ["config.json", "result.json", "verifier"]
    result = read(first / "result.json")
    assert result["config"] == read(first / "config.json")
    assert result["trial_uri"] == first.as_uri()
    assert result["task_checksum"] == "a"
    assert result["config"]["job_id"] == read(job / "result.json")["id"]
    assert result["verifier_result"] == noop["verifier_result"]
    assert (job / oracle["trial_name"] / "exception.txt").read_text() == "why it ended\n"
    stats = read(job / "result.json")["stats"]
    assert (stats["n_completed_trials"], stats["n_errored_trials"]) == (2, 1)
    assert stats["evals"]["nop__set"]["reward_stats"] == {"reward": {"0.0": [noop["trial_name"]]}}
    assert stats["evals"]["oracle__set"]["exception_stats"] == {"VerifierTimeoutError": [oracle["trial_name"]]}
    assert capsys.readouterr().out == f"2 trials in {job}: see them with `harbor view {job.parent}`\n"


def test_trial_repeated_in_another_scope(tmp_path, run):
    folder = evidence(tmp_path / "one", RESULTS["oracle"], verifier__log=b"outer")
    evidence(folder / "scope-trial", RESULTS["scope-trial"], verifier__log=b"inner")
    assert export(run(folder), tmp_path / "job") == 0
    for name, text in (("oracle", "outer"), ("scope-trial", "inner")):
        target = tmp_path / "job" / RESULTS[name]["trial_name"]
        assert (target / "verifier" / "log").read_text() == text
        assert sorted(os.listdir(target)) == ["config.json", "result.json", "verifier"]


def test_steps(tmp_path, run):
    text = {"steps__one__verifier__test-stdout.txt": b"\xff one"}
    made = run(evidence(tmp_path / "one", RESULTS["steps-stopped"], **text))
    assert export(made, tmp_path / "job") == 0
    target = tmp_path / "job" / RESULTS["steps-stopped"]["trial_name"]
    assert (target / "steps" / "one" / "verifier" / "test-stdout.txt").read_text() == "\N{REPLACEMENT CHARACTER} one"
    assert (target / "exception.txt").read_text() == "why it ended\n"


def test_result_that_a_task_wrote_is_no_trial(tmp_path, run):
    forged = json.dumps(RESULTS["noop"]).encode()
    places = ("agent", "verifier", "artifacts/app", "steps/one/verifier", "scope-trial/verifier")
    files = {f"{place}/result.json": forged for place in places}
    folder = evidence(tmp_path / "one", RESULTS["oracle"], **files)
    assert export(run(folder), tmp_path / "job") == 0
    assert set(os.listdir(tmp_path / "job")) == {"config.json", "result.json", RESULTS["oracle"]["trial_name"]}


def test_logs_that_are_no_utf8_are_made_so(tmp_path, run):
    files = {
        "agent/oracle.txt": b"\xff\x00",
        "verifier/test-stdout.txt": "ä".encode("latin-1"),
        "verifier/other": b"\xff",
    }
    assert export(run(evidence(tmp_path / "one", RESULTS["oracle"], **files)), tmp_path / "job") == 0
    target = tmp_path / "job" / RESULTS["oracle"]["trial_name"]
    assert (target / "agent" / "oracle.txt").read_text() == "\N{REPLACEMENT CHARACTER}\0"
    assert (target / "verifier" / "test-stdout.txt").read_text() == "\N{REPLACEMENT CHARACTER}"
    assert (target / "verifier" / "other").read_bytes() == b"\xff", "other files stay as they were"


def test_only_the_latest_trial_of_an_item_counts(tmp_path):
    archive = Archive(tmp_path / "run", "main")
    places = [
        archive.add(evidence(tmp_path / name, RESULTS[name]), "demo/a/oracle")
        for name in ("verifier-timeout", "oracle")
    ]
    archive.close()
    made = make_run(tmp_path / "run", *(trial(place) for place in places))
    assert export(made, tmp_path / "job") == 0
    assert RESULTS["oracle"]["trial_name"] in os.listdir(tmp_path / "job")
    assert read(tmp_path / "job" / "result.json")["n_total_trials"] == 1


def test_loose_evidence(tmp_path):
    evidence(tmp_path / "run" / "evidence" / "demo" / "a" / "oracle", RESULTS["oracle"])
    made = make_run(tmp_path / "run", trial("evidence/demo/a/oracle"))
    assert export(made, tmp_path / "job") == 0
    assert (tmp_path / "run" / "evidence" / "demo" / "a" / "oracle" / "result.json").is_file(), "the run stays"


HOSTILE = [
    {"trial_name": "../../outside"},
    {"trial_name": "/outside__0000000"},
    {"trial_name": "a"},
    {"trial_name": 1},
    {"trial_name": ".entry"},
    {"config": None},
    {"step_results": [1]},
    {"exception_info": {}},
    {"exception_info": "no"},
    {"finished_at": 3},
    {"verifier_result": {"rewards": {"reward": "1"}}},
    {"verifier_result": {"rewards": {"reward": float("nan")}}},
    {"id": float("inf")},
]


@pytest.mark.parametrize("wrong", HOSTILE, ids=str)
def test_trial_that_is_none_is_told_and_the_rest_exported(tmp_path, run, capsys, wrong):
    made = run(evidence(tmp_path / "bad", {**RESULTS["noop"], **wrong}), evidence(tmp_path / "good", RESULTS["oracle"]))
    assert export(made, tmp_path / "job") == 1
    assert set(os.listdir(tmp_path / "job")) == {"config.json", "result.json", RESULTS["oracle"]["trial_name"]}
    (complaint,) = capsys.readouterr().err.splitlines()
    assert complaint.startswith("not exported: evidence/main.tar.gz@0+")
    assert not (tmp_path / "outside").exists()


@pytest.mark.parametrize("text", [b"", b"[]", b"{", b"\xff", b"1", b"[" * 100_000, b"{}"])
def test_result_that_is_no_result(tmp_path, run, capsys, text):
    made = run(evidence(tmp_path / "bad", {}, **{"result.json": text}))
    assert export(made, tmp_path / "job") == 1
    assert read(tmp_path / "job" / "result.json")["n_total_trials"] == 0


def test_damage_is_told_in_few_lines(tmp_path, capsys):
    lost = [trial(f"evidence/main.tar.gz@{number}+50", number) for number in range(8)]
    assert (
        export(make_run(tmp_path / "run", *lost, trial("not kept: No space left on device", 9)), tmp_path / "job") == 1
    )
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 6 and lines[-1] == "and 4 more"


def test_two_trials_of_one_name(tmp_path, run, capsys):
    made = run(evidence(tmp_path / "one", RESULTS["noop"]), evidence(tmp_path / "two", RESULTS["noop"]))
    assert export(made, tmp_path / "job") == 1
    assert "a second trial has the name" in capsys.readouterr().err
    assert read(tmp_path / "job" / "result.json")["n_total_trials"] == 1


def test_usage(tmp_path):
    with pytest.raises(OtvalUsageError, match="is no run"):
        export(tmp_path, tmp_path / "job")
    made = make_run(tmp_path / "run", line())
    with pytest.raises(OtvalUsageError, match="has no trials with evidence"):
        export(made, tmp_path / "job")
    with pytest.raises(OtvalUsageError, match="exists"):
        export(made, tmp_path)
    assert not (tmp_path / "job").exists()
