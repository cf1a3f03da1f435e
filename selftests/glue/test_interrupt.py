"""A Ctrl-C whose exception Python drops ends the run all the same."""

import signal

pytest_plugins = ["pytester"]

TASKS = {"a": {"noop": "lose-interrupt"}, "b": {}}


def test_no_other_item_begins(project):
    project.dataset(tasks=TASKS)
    outcome = project.process("datasets/demo", "-m", "noop", "-W", "ignore")
    assert outcome.status == 2, outcome.lines
    assert [line.rpartition("/")[0].rpartition("/")[2] for line in project.ledger()] == ["a"]


def test_the_usual_handler_comes_back(project):
    before = signal.getsignal(signal.SIGINT)
    project.dataset()
    assert project.run("datasets/demo", "-m", "noop").status == 0
    assert signal.getsignal(signal.SIGINT) is before


def test_another_handler_stays(project, monkeypatch):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        project.dataset()
        assert project.run("datasets/demo", "-m", "noop").status == 0
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
