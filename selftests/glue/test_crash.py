"""A killed worker, a killed run and Ctrl-C."""

import os
import signal
import time
from xml.etree import ElementTree

from pytest_otval.ledger import read_ledger
from selftests.glue.conftest import finish, ids

pytest_plugins = ["pytester"]


def test_what_a_killed_worker_was_at_is_an_error(project):
    project.dataset(tasks={"a": {"build": "kill"}, "b": {}})
    outcome = project.process("-n2", "datasets/demo", "--junitxml=junit.xml", "--html=report.html")
    assert (outcome.status, outcome.counts) == (8, {"passed": 8, "error": 1})
    assert sum("node down" in line for line in outcome.lines) == 3
    (said,) = [line for line in outcome.lines if line.startswith("killed: worker gw")]
    assert "died while it ran this, as 2 did before it; the kernel's log" in said
    ledger = project.ledger()
    assert sorted(ledger) == sorted(["datasets/demo/dataset.toml::static", *ids("a", "b")])
    line = ledger[ids("a")[1]]
    assert (line["verdict"], line["class"], line["stage"]) == ("error", "killed", "build")
    case = next(case for case in ElementTree.parse("junit.xml").iter("testcase") if case.find("error") is not None)
    assert (case.get("classname"), case.get("name")) == ("datasets.demo.tasks.a.task.toml", "build")
    assert "task.toml::build::setup" in (project.root / "report.html").read_text()


def test_an_item_whose_worker_died_gets_another_one(project, tmp_path):
    project.dataset(tasks={"a": {"oracle": f"kill-once {tmp_path / 'killed'}"}, "b": {}, "c": {}})
    outcome = project.process("-n2", "datasets/demo")
    assert (outcome.status, outcome.counts) == (0, {"passed": 13})
    assert sum("node down" in line for line in outcome.lines) == 1
    assert set(project.ledger()) == {"datasets/demo/dataset.toml::static", *ids("a", "b", "c")}


def test_deadly_items_do_not_end_the_run(project):
    project.dataset(tasks={**{name: {"build": "kill"} for name in "abc"}, **{name: {} for name in "defgh"}})
    outcome = project.process("-n2", "datasets/demo")
    assert (outcome.status, outcome.counts) == (8, {"passed": 1 + 8 * 4 - 3, "error": 3})
    assert not any("maximum crashed workers" in line for line in outcome.lines)


def test_without_restarts_there_is_no_second_try(project):
    project.dataset(tasks={"a": {"build": "kill"}, "b": {}})
    outcome = project.process("-n2", "datasets/demo", "--max-worker-restart=0")
    assert outcome.status == 8
    assert project.ledger()[ids("a")[1]]["headline"].startswith("worker gw")


def test_a_failure_is_worse_than_a_killed_worker(project):
    project.dataset(tasks={"a": {"build": "kill", "noop": "wrong-reward"}})
    assert project.process("-n1", "datasets/demo").status == 1


def test_a_killed_worker_of_another_test_is_left_to_xdist(project):
    project.dataset(tasks={"a": {}})
    project.pytester.makepyfile(test_plain="import os\ndef test_one(): os.kill(os.getpid(), 9)\n")
    outcome = project.process("-n1", "datasets/demo", "test_plain.py")
    assert (outcome.status, outcome.counts) == (1, {"passed": 5, "failed": 1})


def wait_for(path):
    while not path.exists():
        time.sleep(0.01)


def test_ctrl_c_keeps_what_was_answered(project, tmp_path):
    asked = tmp_path / "asked"
    project.dataset(tasks={"a": {"oracle": f"sleep {asked}"}})
    process = project.start("datasets/demo/tasks/a")
    wait_for(asked)
    process.send_signal(signal.SIGINT)
    outcome = finish(process)
    assert outcome.status == 2
    assert list(project.ledger()) == ids("a")[:2]
    assert any(line.startswith("static") for line in outcome.lines), "the table of a run that was broken off"


def test_ctrl_c_with_workers(project, tmp_path):
    asked = tmp_path / "asked"
    project.dataset(tasks={"a": {"oracle": f"sleep {asked}"}})
    process = project.start("-n1", "datasets/demo/tasks/a")
    wait_for(asked)
    os.killpg(process.pid, signal.SIGINT)
    assert finish(process).status == 2
    assert list(project.ledger()) == ids("a")[:2]


def test_the_ledger_of_a_killed_run_is_readable_and_can_go_on(project, tmp_path):
    asked = tmp_path / "asked"
    project.dataset(tasks={"a": {"oracle": f"sleep {asked}"}})
    process = project.start("datasets/demo/tasks/a")
    wait_for(asked)
    process.kill()
    finish(process)
    assert [line["id"] for line in read_ledger(project.runs[-1])] == ids("a")[:2]
