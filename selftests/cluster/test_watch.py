"""A run as whoever looks sees it, over answers of Slurm that a test writes."""

import json

import pytest

from pytest_otval.cluster import states, submission, watch
from pytest_otval.cluster.job_pytest import CONTRACT
from pytest_otval.cluster.journal import answered
from pytest_otval.cluster.request import Models, Request, write_request
from pytest_otval.cluster.shards import write_plan
from pytest_otval.cluster.states import JobState, SlurmUnreachableError
from pytest_otval.cluster.submission import Array, Element
from pytest_otval.cluster.watch import GRACE_SECONDS, SETTLE_SECONDS, Watch, cancel, state_line
from pytest_otval.contract.file import sealed, write_contract
from pytest_otval.contract.model import Contract, DatasetPin, TaskPin
from pytest_otval.core import OtvalUsageError, node_id
from pytest_otval.llm.budget import Budget
from pytest_otval.llm.chat import Usage

TASKS = "abcd"
IDS = [node_id("d", task, "oracle") for task in TASKS]


class Cluster:
    """A run folder with four items in two shards, a clock, and what Slurm says."""

    def __init__(self, run):
        self.run = run
        self.now = 1000.0
        self.said = {}
        self.silent = False
        self.cancelled = []
        run.mkdir()
        pin = DatasetPin("", (("oracle",),), {task: TaskPin("0" * 64, ()) for task in TASKS})
        contract = Contract(1, "", {}, "own", {}, {"d": pin})
        write_contract(run / CONTRACT, sealed(contract))
        write_request(run, Request("site", "p", 2, 3600, 60))
        write_plan(run, [[0, 1], [2, 3]])
        (run / "ledger").mkdir()
        self.submit(run, None, [Element(0), Element(1)])

    def submit(self, run, request, elements, exclude=(), resumes=False):
        number = len(submission.arrays_of(run))
        array = Array(number, tuple(elements), self.now, str(10 + number), tuple(exclude), resumes)
        submission._write(run, array)
        return array

    def says(self, array, element, state, reason="None", node=""):
        self.said[array, element] = JobState(f"{10 + array}_{element}", array, element, state, node, reason)

    def states(self, arrays):
        if self.silent:
            raise SlurmUnreachableError("Unable to contact slurm controller")
        return dict(self.said)

    def write(self, shard, array, element, *lines, restart=0):
        file = self.run / "ledger" / f"shard-{shard}.{10 + array}_{element}.{restart}.jsonl"
        with file.open("a") as opened:
            opened.writelines(json.dumps({"v": 1, **line}) + "\n" for line in lines)

    def began(self, shard, array, element, *ids):
        began = {"kind": "shard", "event": "began", "node": "n1", "array": array}
        self.write(shard, array, element, began, *({"kind": "started", "id": id} for id in ids))

    def answers(self, shard, array, element, *ids):
        self.write(shard, array, element, *({"kind": "result", "id": id, "verdict": "pass"} for id in ids))

    def ended(self, shard, array, element, fault="", why=""):
        self.write(shard, array, element, {"kind": "shard", "event": "ended", "fault": fault, "why": why})


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    cluster = Cluster(tmp_path / "run")
    monkeypatch.setattr(submission, "submit", cluster.submit)
    monkeypatch.setattr(states, "cancel_job", cluster.cancelled.append)
    monkeypatch.setattr(states, "cancel", lambda run, arrays, only=(): cluster.cancelled.append((run, *only)))
    return cluster


@pytest.fixture
def look(cluster, monkeypatch):
    """Look as one process would that stays."""
    watching = Watch(cluster.run, lambda: cluster.now)
    watching._slurm = cluster

    def step(seconds=0.0):
        cluster.now += seconds
        list(watching.lines())
        return watching.look()

    return step


def arrays(cluster):
    return [array.elements for array in submission.arrays_of(cluster.run)]


def test_how_it_stands(cluster, look):
    cluster.says(0, 0, "RUNNING", node="n1")
    cluster.says(0, 1, "PENDING", "Priority")
    cluster.began(0, 0, 0, IDS[0])
    cluster.answers(0, 0, 0, IDS[0])
    view = look()
    assert (view.done, view.items, view.over) == (1, 4, False)
    assert state_line(view) == "jobs 1 pending (Priority), 1 running on n1, 0 over; 1 of 4 items"


def test_all_answers_are_the_end(cluster, look):
    cluster.began(0, 0, 0)
    cluster.answers(0, 0, 0, *IDS)
    assert look().over


def test_what_a_job_left_is_submitted_once(cluster, look):
    cluster.says(0, 0, "FAILED")
    cluster.says(0, 1, "RUNNING")
    cluster.began(0, 0, 0)
    cluster.answers(0, 0, 0, IDS[0])
    look()
    assert len(arrays(cluster)) == 1, "what it wrote last may be on its way"
    look(SETTLE_SECONDS + 1)
    look()
    assert arrays(cluster)[1:] == [(Element(0, (1,)),)]


def test_an_answer_that_comes_late_is_not_asked_for_again(cluster, look):
    cluster.says(0, 0, "COMPLETED")
    cluster.says(0, 1, "RUNNING")
    look()
    cluster.began(0, 0, 0)
    cluster.answers(0, 0, 0, IDS[0], IDS[1])
    look(SETTLE_SECONDS + 1)
    assert len(arrays(cluster)) == 1


def test_a_job_that_is_queued_again_goes_on(cluster, look):
    cluster.says(0, 0, "RUNNING")
    cluster.says(0, 1, "RUNNING")
    cluster.began(0, 0, 0, IDS[0])
    cluster.ended(0, 0, 0, "slurm", "its time was up")
    cluster.says(0, 0, "PENDING", "BeginTime")
    look(100)
    look(100)
    assert len(arrays(cluster)) == 1


def test_jobs_that_slurm_forgot_are_lost_after_a_while(cluster, look):
    look(1)
    look(GRACE_SECONDS - 10)
    assert len(arrays(cluster)) == 1
    look(20)
    assert arrays(cluster)[1:] == [(Element(0, (0, 1)), Element(1, (2, 3)))]


def test_who_looks_the_next_day_does_not_wait(cluster, look):
    cluster.began(0, 0, 0)
    cluster.answers(0, 0, 0, IDS[0])
    look(24 * 3600)
    assert arrays(cluster)[1:] == [(Element(0, (1,)), Element(1, (2, 3)))]


def test_a_silent_controller_loses_nothing(cluster, look):
    cluster.silent = True
    view = look(10 * GRACE_SECONDS)
    assert "Unable to contact" in view.trouble and len(arrays(cluster)) == 1


def test_impossible_requests_end_with_the_reason(cluster, look):
    cluster.says(0, 0, "PENDING", "PartitionConfig")
    with pytest.raises(OtvalUsageError, match="never starts the jobs of run: PartitionConfig"):
        look()
    assert cluster.cancelled == [("run",)]
    assert look().cancelled.endswith("PartitionConfig")


def test_what_a_node_could_not_start_is_taken_out_of_the_queue(cluster, look):
    cluster.says(0, 0, "PENDING", "launch failed requeued held")
    cluster.says(0, 1, "RUNNING")
    look()
    assert cluster.cancelled == ["10_0"]
    cluster.says(0, 0, "CANCELLED")
    look()
    look(SETTLE_SECONDS + 1)
    assert arrays(cluster)[1:] == [(Element(0, (0, 1)),)]


def test_nothing_of_a_cancelled_run_is_submitted_again(cluster, look):
    cancel(cluster.run)
    cluster.says(0, 0, "RUNNING")
    assert not look().over
    assert cluster.cancelled == [("run",), ("run",)], "it still ran"
    cluster.says(0, 0, "CANCELLED")
    cluster.says(0, 1, "CANCELLED")
    look()
    assert look(SETTLE_SECONDS + 1).over and len(arrays(cluster)) == 1


@pytest.fixture
def spent(cluster):
    """All that the run may spend on models is spent."""
    write_request(cluster.run, Request("site", "p", 2, 3600, 60, models=Models(budget_tokens=5)))
    Budget(cluster.run).spend("m", Usage(7))


def test_when_the_budget_is_spent_jobs_end_by_themselves_and_no_more_start(cluster, spent, look):
    cluster.says(0, 0, "RUNNING")
    cluster.says(0, 1, "PENDING")
    cluster.began(0, 0, 0, IDS[0])
    view = look()
    assert cluster.cancelled == [("run", "pending")] and not view.over
    cluster.answers(0, 0, 0, IDS[0])
    cluster.ended(0, 0, 0)
    cluster.says(0, 0, "COMPLETED")
    cluster.says(0, 1, "CANCELLED")
    look()
    view = look(SETTLE_SECONDS + 1)
    assert view.over and len(arrays(cluster)) == 1
    assert state_line(view).endswith("1 of 4 items; the budget of 5 tokens is spent: 7 were used")


def test_an_item_that_kills_its_jobs_gets_an_error_for_an_answer(cluster, look):
    cluster.says(0, 1, "RUNNING")
    for array in range(3):
        cluster.says(array, 0, "FAILED")
        cluster.began(0, array, 0, IDS[0])
        if array == 1:
            cluster.answers(0, 1, 0, IDS[1])
        look()
        look(SETTLE_SECONDS + 1)
    assert arrays(cluster)[1:] == [(Element(0, (0, 1)),), (Element(0, (0,), alone=True),)]
    view = look()
    assert (view.done, view.verdicts["error"]) == (2, 1)
    (line,) = [json.loads(text) for text in (cluster.run / "ledger" / "watch.jsonl").read_text().splitlines()]
    assert (line["id"], line["class"]) == (IDS[0], "crashed")


def test_two_who_look_submit_once(cluster, look, monkeypatch):
    cluster.says(0, 0, "FAILED")
    cluster.says(0, 1, "RUNNING")
    look()
    with watch.locked_now(cluster.run / watch.LOCK):
        look(SETTLE_SECONDS + 1)
        assert len(arrays(cluster)) == 1
    look()
    assert len(arrays(cluster)) == 2


def test_what_sbatch_refuses_now_is_told_and_tried_again(cluster, look, monkeypatch):
    def refuse(*_):
        raise OtvalUsageError("sbatch refused the jobs: QOSMaxSubmitJobPerUserLimit")

    cluster.says(0, 0, "FAILED")
    cluster.says(0, 1, "RUNNING")
    monkeypatch.setattr(submission, "submit", refuse)
    look()
    assert "QOSMaxSubmit" in look(SETTLE_SECONDS + 1).trouble
    monkeypatch.setattr(submission, "submit", cluster.submit)
    look()
    assert len(arrays(cluster)) == 2


def test_a_folder_that_was_not_submitted_is_told(tmp_path):
    with pytest.raises(OtvalUsageError, match="was not submitted"):
        Watch(tmp_path)


def test_when_a_run_goes_on_errors_of_before_are_no_answers_and_no_fault(cluster):
    error = {"kind": "result", "id": IDS[0], "verdict": "error"}
    cluster.write(0, 0, 0, {"kind": "shard", "event": "began", "node": "n1", "array": 0}, error)
    cluster.answers(0, 0, 0, IDS[1])
    (cluster.run / "ledger" / "watch.jsonl").write_text(json.dumps({"v": 1, **error, "id": IDS[2]}) + "\n")
    for shard in (0, 1):
        cluster.says(0, shard, "FAILED")
    assert sorted(line["id"] for line in Watch(cluster.run).lines()) == IDS[:3]
    cluster.submit(cluster.run, None, [Element(0, (0,)), Element(1, (2, 3))], resumes=True)
    assert answered(cluster.run, 0, 1) == {IDS[1]} and answered(cluster.run, 0) == {*IDS[:3]}
    for place in (0, 1):
        cluster.says(1, place, "RUNNING", node="n1")
    cluster.began(0, 1, 0, IDS[0])
    cluster.write(0, 1, 0, error)
    found = Watch(cluster.run, lambda: cluster.now)
    assert sorted(line["id"] for line in found.lines()) == IDS[:2]
    assert found.look().done == 2
