"""Records of a dataset's validation, from the runs and contracts of a workspace."""

import json
import os
from types import MappingProxyType

import pytest

from pytest_otval.contract.file import sealed, write_contract
from pytest_otval.contract.model import Contract, DatasetPin, TaskPin
from pytest_otval.core import OtvalUsageError
from pytest_otval.ledger import write_run
from pytest_otval.sources.adapters.base import Refused
from pytest_otval.sources.provenance import Made, Origin, Prepared
from pytest_otval.sources.validated import RECORD, Answers, read_record, write_record
from pytest_otval.workspace import Workspace
from selftests.report.ledgers import line, make_run

EARLY, LATE = (f"2026-0{month}-01T00:00:00.000+00:00" for month in (1, 2))


@pytest.fixture
def dataset(tmp_path):
    folder = tmp_path / "checkout" / "datasets" / "demo"
    for task in "abc":
        (folder / "tasks" / task).mkdir(parents=True)
        (folder / "tasks" / task / "task.toml").touch()
    (folder / "dataset.toml").touch()
    return folder


@pytest.fixture
def workspace(tmp_path):
    (tmp_path / "ws" / "contracts").mkdir(parents=True)
    return Workspace(tmp_path / "ws")


def record(dataset, workspace):
    return Answers(workspace, [dataset.parents[1] / "contracts"]).of(dataset)


def contract(*tasks, dataset="demo", inapplicable=MappingProxyType({})):
    pins = {task: TaskPin("0" * 64, ()) for task in tasks}
    pin = DatasetPin("", (("oracle",),), pins, inapplicable=dict(inapplicable))
    return sealed(Contract(1, "", {}, "", {}, {dataset: pin}))


def under(run, file, *lines, cwd="/"):
    make_run(run, *lines)
    write_run(run, {"cwd": str(cwd), "run_settings": {"contract": str(file)}})


def test_the_latest_answers_are_counted_by_stage(dataset, workspace):
    make_run(workspace.runs / "1", line("a", reason="wrong-reward", time=EARLY), line("b"), line("b", "noop"))
    make_run(workspace.runs / "2", line("a", time=LATE), line("c", reason="no-solution"))
    found = record(dataset, workspace)
    assert (found.tasks, found.asked, found.faults) == (3, LATE[:10], {})
    assert found.stages == {"oracle": {"n/a": 1, "pass": 2}, "noop": {"pass": 1}}
    assert found.answers == 4


def test_an_error_stands_only_where_nothing_else_is_known(dataset, workspace):
    make_run(workspace.runs / "1", line("a", time=EARLY), line("b", reason="no-start", time=EARLY))
    make_run(workspace.runs / "2", line("a", reason="no-start", time=LATE))
    found = record(dataset, workspace)
    assert found.stages == {"oracle": {"error": 1, "pass": 1}}
    assert found.faults == {}


def test_answers_about_older_content_and_other_tasks_do_not_count(dataset, workspace):
    old = line("a", reason="wrong-reward", task_digest="old", time=EARLY)
    make_run(workspace.runs / "1", old, line("gone"), line("a", "noop", task_digest="new", time=LATE))
    assert record(dataset, workspace).stages == {"noop": {"pass": 1}}


def test_answers_about_the_content_that_is_prepared_count(dataset, workspace):
    made = [Made("a", "a", "s", "now"), Made("b", "b", "s", "never asked about")]
    Prepared(Origin("r"), made, [Refused("x", "no-tests", "none")]).write(dataset)
    before = line("a", reason="wrong-reward", task_digest="without the patch", time=LATE)
    make_run(workspace.runs / "1", line("a", task_digest="now", time=EARLY), line("b"))
    make_run(workspace.runs / "2-effect-before", before)
    found = record(dataset, workspace)
    assert (found.stages, found.refused) == ({"oracle": {"pass": 2}}, 1)


def test_faults_are_what_nothing_expects(dataset, workspace):
    make_run(
        workspace.runs / "1",
        line("a", reason="wrong-reward"),
        line("b", reason="wrong-reward", known_bad="known bad until ..."),
        line("c", reason="image-failed"),
        line(None, "static", "static-findings"),
    )
    found = record(dataset, workspace)
    assert found.stages == {"oracle": {"blocked": 1, "fail": 1, "known bad": 1}}
    assert {reason: one.such_as for reason, one in found.faults.items()} == {
        "image-failed": ("c",),
        "static-findings": ("demo/dataset.toml",),
        "wrong-reward": ("a",),
    }


def test_a_dataset_that_is_not_prepared_has_no_record(dataset, workspace):
    assert record(dataset.parent / "other", workspace) is None


def test_a_damaged_run_and_a_damaged_contract_are_left_out(dataset, workspace, capsys):
    make_run(workspace.runs / "1", line("a"))
    bad = workspace.runs / "2" / "ledger"
    bad.mkdir(parents=True)
    (bad / "main.jsonl").write_text('{"v": 1, "kind": "result"}\n')
    (workspace.contracts / "cut.json").write_text("{")
    assert record(dataset, workspace).stages == {"oracle": {"pass": 1}}
    told = capsys.readouterr().err
    assert "no version of ours wrote" in told and "cut.json is no contract" in told


def test_the_contract_that_was_run_last_is_told(dataset, workspace):
    file = workspace.contracts / "mine.json"
    write_contract(file, contract("a", "b", inapplicable={"b": {"oracle": "no-solution"}}))
    write_contract(workspace.contracts / "other.json", contract("x", dataset="other"))
    assert record(dataset, workspace).contract.model_dump() == {
        "file": "mine.json",
        "run": "",
        "items": 2,
        "expected": 0,
    }
    foreseen = line("b", reason="no-solution", known_bad="contract: n/a no-solution")
    under(workspace.runs / "1", "contracts/mine.json", line("a", time=LATE), foreseen, cwd=workspace.root)
    found = record(dataset, workspace).contract
    assert (found.file, found.run, found.items, found.expected) == ("mine.json", LATE[:10], 2, 2)
    write_contract(dataset.parents[1] / "contracts" / "newer.json", contract("a"))
    assert record(dataset, workspace).contract.file == "mine.json"


def test_what_a_contract_does_not_say_is_not_as_expected(dataset, workspace):
    file = workspace.contracts / "mine.json"
    write_contract(file, contract("a", "b", "c"))
    lines = [line("a", reason="no-solution"), line("b", reason="wrong-reward"), line("b", "noop")]
    under(workspace.runs / "1", file, *lines)
    assert record(dataset, workspace).contract.expected == 0


def test_a_record_is_read_as_it_was_written(dataset, workspace):
    assert read_record(dataset) is None
    make_run(workspace.runs / "1", line("a", reason="wrong-reward"))
    written = record(dataset, workspace)
    write_record(dataset, written)
    assert read_record(dataset) == written


@pytest.mark.parametrize("content", ["", "{}", '{"tasks": "many"}', json.dumps({"tasks": 1, "more": 2}), "\xff"])
def test_what_is_no_record_is_refused(content, dataset):
    (dataset / RECORD).write_bytes(content.encode("latin-1"))
    with pytest.raises(OtvalUsageError, match="no record of ours: remove it, then `dataset inventory --write demo`"):
        read_record(dataset)


def test_a_pipe_is_no_record(dataset):
    os.mkfifo(dataset / RECORD)
    with pytest.raises(OtvalUsageError, match="no record of ours"):
        read_record(dataset)
