"""Attempts in a ledger that others are still writing, and their trajectories, which may be anything."""

import json

import pytest

from pytest_otval.evidence import Archive, EvidenceError
from pytest_otval.stages.attempted import AttemptLines, digest_of, trajectory_of
from selftests.report.ledgers import attempt, line, make_run

TASK = ("demo", "a", "sha256:a")


def ids(lines):
    return [line["id"].rpartition("::")[2] for line in lines]


@pytest.fixture
def run(tmp_path):
    return lambda *lines, **writers: make_run(tmp_path / "run", *lines, **writers)


def test_attempts_of_all_writers(run):
    lines = [attempt("+", number=1), attempt("-", "b"), line(stage="oracle")]
    found = AttemptLines(run(*lines, gw0=[attempt("x", number=0), attempt("-", model="z")])).of(*TASK)
    assert ids(found) == ["teacher[m-0]", "teacher[m-1]", "teacher[z-0]"]
    assert [one["class"] for one in found] == ["no-reward", "expected", "unsolved"]


def test_what_is_no_attempt(run):
    """An error, one that is blocked, one at other files."""
    lines = [attempt("!"), attempt("+", number=1, task_digest="sha256:other"), attempt("+", number=2, verdict="n/a")]
    assert AttemptLines(run(*lines)).of(*TASK) == []
    assert AttemptLines(run()).of(*TASK) == []


def test_the_latest_counts_and_errors_do_not(run):
    times = ["2026-01-01T00:00:02.000+00:00", "2026-01-01T00:00:01.000+00:00", "2026-01-01T00:00:03.000+00:00"]
    found = AttemptLines(
        run(
            gw0=[attempt("+", time=times[0]), attempt("-", time=times[1]), attempt("!", time=times[2])],
        )
    ).of(*TASK)
    assert [one["class"] for one in found] == ["expected"]


def test_a_ledger_that_grows(run):
    folder = run(attempt("+"))
    lines = AttemptLines(folder)
    assert ids(lines.of(*TASK)) == ["teacher[m-0]"]
    text = attempt("-", number=1).as_json() + "\n"
    with (folder / "ledger" / "main.jsonl").open("a") as file:
        file.write(text[:100])
        file.flush()
        assert ids(lines.of(*TASK)) == ["teacher[m-0]"]
        file.write(text[100:])
    assert ids(lines.of(*TASK)) == ["teacher[m-0]", "teacher[m-1]"]


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "{}", '{"v": 1, "kind": "result", "stage": "teacher"}', "null", '{"id": 3, "v": 1}']
)
def test_lines_that_are_none_of_ours(run, text):
    folder = run(attempt("+"))
    marked = f'{text} "result" "teacher"'
    (folder / "ledger" / "gw0.jsonl").write_text(f"{marked}\n{text}\n\xff\n")
    assert ids(AttemptLines(folder).of(*TASK)) == ["teacher[m-0]"]


@pytest.mark.parametrize("change", [{"class": []}, {"class": None}, {"id": None}, {"verdict": []}, {"time": {}}])
def test_lines_of_attempts_that_are_not_as_ours_are(run, change):
    folder = run(attempt("+"))
    (folder / "ledger" / "gw0.jsonl").write_text(json.dumps({**attempt("-", number=1).as_dict(), **change}) + "\n")
    found = AttemptLines(folder).of(*TASK)
    assert all(isinstance(one[name], str) for one in found for name in ("id", "class", "verdict", "time"))
    assert "teacher[m-0]" in ids(found)


def test_digests(run):
    one, two = AttemptLines(run(attempt("+"), attempt("-", number=1))).of(*TASK)
    assert digest_of([one]) == digest_of([dict(reversed(one.items()))])
    assert len({digest_of([]), digest_of([one]), digest_of([two]), digest_of([one, two])}) == 4


@pytest.fixture
def evidence(tmp_path):
    """Keep files as the evidence of an attempt; return the run and the place."""

    def keep(files):
        folder = tmp_path / "made" / "x"
        folder.mkdir(parents=True)
        for name, data in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
        run = tmp_path / "run"
        archive = Archive(run, "main")
        place = archive.add(folder, "x")
        archive.close()
        return run, place

    return keep


def atif(*messages):
    steps = [{"step_id": number, "message": text} for number, text in enumerate(messages, start=1)]
    return json.dumps({"agent": {"name": "x"}, "steps": steps}).encode()


def test_a_trajectory(evidence):
    found = trajectory_of(*evidence({"agent/trajectory.json": atif("a", "b"), "agent/other.json": b"{}"}))
    assert [step["message"] for step in found["steps"]] == ["a", "b"]


@pytest.mark.parametrize("place", ["artifacts", "verifier", "artifacts/steps/a", "steps/a/artifacts", "agent"])
@pytest.mark.parametrize("forged", [atif("forged"), b"no trajectory"], ids=["whole", "broken"])
def test_what_an_attempt_left_elsewhere_is_no_trajectory_of_it(evidence, place, forged):
    files = {"agent/trajectory.json": atif("a"), f"{place}/agent/trajectory.json": forged}
    assert [step["message"] for step in trajectory_of(*evidence(files))["steps"]] == ["a"]


def test_trajectories_of_several_steps_of_a_task(evidence):
    files = {f"steps/{name}/agent/trajectory.json": atif(name, "end") for name in ("one", "two")}
    found = trajectory_of(*evidence(files))
    assert [(step["step_id"], step["message"]) for step in found["steps"]] == [
        *((1, "one"), (2, "end"), (3, "two"), (4, "end"))
    ]


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, "holds no trajectory"),
        ({"agent/trajectory.json": b"\x00"}, "is no trajectory: JSONDecodeError"),
        ({"agent/trajectory.json": b"[" * 100_000}, "is no trajectory: RecursionError"),
        ({"agent/trajectory.json": b"\xff\xfe"}, "is no trajectory"),
        ({"agent/trajectory.json": b"[]"}, "it is no object"),
    ],
)
def test_what_is_no_trajectory(evidence, files, words):
    with pytest.raises(EvidenceError, match=words):
        trajectory_of(*evidence({"result.json": b"{}", **files}))


def test_steps_that_are_none(evidence):
    files = {
        f"steps/{n}/agent/trajectory.json": text for n, text in enumerate((b'{"steps": 3}', b'{"steps": [4, {}]}'))
    }
    assert trajectory_of(*evidence(files))["steps"] == [{"step_id": 1}]


def test_without_evidence(tmp_path):
    with pytest.raises(EvidenceError, match="holds no trajectory"):
        trajectory_of(tmp_path, "")
    with pytest.raises(EvidenceError):
        trajectory_of(tmp_path, "evidence/../../etc")
