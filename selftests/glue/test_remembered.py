"""An item whose pass is remembered is told as ever, and goes the usual way where somebody has a say in it."""

from xml.etree import ElementTree

import pytest

from pytest_otval.glue.recording import Records
from pytest_otval.glue.remembered import TellRemembered
from selftests.checks.conftest import write_task
from selftests.glue.conftest import ids

pytest_plugins = ["pytester"]

CHOSEN = ("datasets/demo/tasks/a", "datasets/demo/tasks/b")
STATIC = ids("a", "b", stages=("static",))
TELL = """
import os, pytest

def note(*words):
    with open("told", "a") as file:
        print(*words, file=file)

@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    report.sections.append(("mine", report.when))
    return report

def pytest_runtest_logreport(report):
    note(report.nodeid, report.when, report.outcome, report.sections, sorted(report.keywords), report.location)

def pytest_runtest_logstart(nodeid):
    note(nodeid, "starts")

def pytest_runtest_logfinish(nodeid):
    note(nodeid, "ends")
"""


@pytest.fixture
def tasks(project, monkeypatch):
    """Two sound tasks, for the real static stage."""
    monkeypatch.setenv("STUB_REAL", "static")
    folder = project.dataset(tasks={})
    for name in ("a", "b"):
        write_task(folder / "tasks" / name, {})
    return folder / "tasks"


@pytest.fixture
def swift(monkeypatch):
    """The ids of items that were not set up by pytest."""
    told = []
    protocol = TellRemembered.pytest_runtest_protocol

    def spy(self, item, nextitem):
        done = protocol(self, item, nextitem)
        if done:
            told.append(item.nodeid)
        return done

    monkeypatch.setattr(TellRemembered, "pytest_runtest_protocol", spy)
    return told


def told(project):
    path = project.root / "told"
    lines = path.read_text().splitlines()
    path.unlink()
    return lines


def test_reports_are_what_they_would_be(project, tasks, swift):
    (project.root / "conftest.py").write_text(TELL)
    project.run("-m", "static", *CHOSEN, "--junitxml=first.xml")
    assert (swift, len(first := told(project))) == ([], 10)
    project.run("-m", "static", *CHOSEN, "--junitxml=second.xml")
    assert swift == STATIC
    assert told(project) == first
    cases = [ElementTree.parse(project.root / name).getroot().iter("testcase") for name in ("first.xml", "second.xml")]
    assert [case.get("name") for case in cases[0]] == [case.get("name") for case in cases[1]]
    assert [line["cached_from"] for line in project.ledger().values()] == ["cache/static"] * 2


def test_a_hook_of_others_around_a_phase_is_called(project, tasks, swift):
    (project.root / "conftest.py").write_text(
        "def pytest_runtest_setup(item):\n    seen = open('seen', 'a')\n    seen.write('x')\n    seen.close()\n"
    )
    for _ in range(2):
        assert project.run("-m", "static", *CHOSEN).status == 0
    assert ((project.root / "seen").read_text(), swift) == ("xxxx", [])


def test_a_mark_of_others_counts(project, tasks, swift):
    project.run("-m", "static", *CHOSEN)
    (project.root / "conftest.py").write_text(
        "import pytest\ndef pytest_collection_modifyitems(items):\n"
        "    items[0].add_marker(pytest.mark.xfail(strict=True))\n"
    )
    assert project.run("-m", "static", *CHOSEN).counts == {"failed": 1, "passed": 1}
    assert swift == STATIC[1:]


def test_a_skip_mark_of_others_is_told(project, tasks, swift):
    (project.root / "conftest.py").write_text(
        "import pytest\ndef pytest_collection_modifyitems(items):\n"
        "    items[0].add_marker(pytest.mark.skip(reason='not today'))\n"
    )
    outcome = project.run("-m", "static", "-rs", *CHOSEN)
    assert outcome.counts == {"skipped": 1, "passed": 1}, outcome.lines
    assert any("task.toml" in line and "not today" in line for line in outcome.lines)


def test_other_tests_around_them_are_torn_down(project, tasks, swift):
    test = (
        "import pytest\n@pytest.fixture(scope='module', autouse=True)\ndef around():\n    yield\n"
        "    print('left', __name__)\n@pytest.mark.static\ndef test_one():\n    pass\n"
    )
    for name in ("test_first.py", "test_last.py"):
        (project.root / name).write_text(test)
    for _ in range(2):
        outcome = project.run("-m", "static", "-s", "test_first.py", *CHOSEN, "test_last.py")
        assert outcome.counts == {"passed": 4}, outcome.lines
        assert sum("left" in line for line in outcome.lines) == 2
    assert swift == STATIC


def test_what_goes_wrong_is_told_by_the_item(project, tasks, swift, monkeypatch):
    project.run("-m", "static", *CHOSEN)
    record = Records.result
    calls = []

    def first_fails(self, *args, **kwargs):
        calls.append(1)
        if len(calls) == 1:
            raise OSError("no space")
        return record(self, *args, **kwargs)

    monkeypatch.setattr(Records, "result", first_fails)
    assert project.run("-m", "static", *CHOSEN).counts == {"passed": 2}
    assert swift == STATIC[1:]
