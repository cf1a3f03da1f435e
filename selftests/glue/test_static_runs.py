"""Runs of the static stage as a user starts them: what fails, what is allowed, repaired, remembered."""

import json
import stat

import pytest

from pytest_otval.ledger import read_ledger
from selftests.checks.conftest import SOUND, write_task
from selftests.glue.conftest import ids

pytest_plugins = ["pytester"]

CRLF = SOUND["solution/solve.sh"].replace("\n", "\r\n")
OLD = '# Mine.\nversion = "1.4" # old\n' + SOUND["task.toml"].split("\n", 1)[1]
BROKEN = {
    "task.toml": OLD,
    "solution/solve.sh": CRLF,
    "tests/test.sh": SOUND["tests/test.sh"].replace("pytest /tests/test_outputs.py", "/tests/run.sh"),
    "tests/run.sh": ("0640", "#!/bin/bash\npytest /tests/test_outputs.py\n"),
}
WARNED = {"environment/a": ("link", "b")}
"""A dangling link, which is a warning."""

both = pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["alone", "workers"])


@pytest.fixture
def tasks(project, monkeypatch):
    """Make a dataset of tasks for the real static stage."""
    monkeypatch.setenv("STUB_REAL", "static")

    def make(otval="", **edits):
        folder = project.dataset(tasks={}, otval=otval)
        (folder / "LICENSE").write_text("")
        for name, changes in edits.items():
            write_task(folder / "tasks" / name, changes)
        return folder / "tasks"

    return make


def statics(*names):
    return ids(*names, stages=("static",))


def checks(project, name="a"):
    return [(one["check"], one.get("allowed", "")) for one in project.ledger()[statics(name)[0]]["checks"]]


def contents(folder):
    return {
        path.relative_to(folder): (path.read_bytes(), stat.S_IMODE(path.stat().st_mode))
        for path in folder.rglob("*")
        if path.is_file()
    }


# --- what fails ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("severity", "status"), [("error", 0), ("warning", 1), ("info", 1)])
def test_the_severity_that_fails_is_chosen(project, tasks, severity, status):
    tasks(a=WARNED)
    outcome = project.run("-m", "static", f"--otval-severity={severity}", "datasets/demo/tasks")
    assert outcome.status == status, outcome.lines
    assert checks(project) == [("entries-link-dangling", "")]


def test_an_unknown_severity_is_refused(project, tasks):
    tasks(a={})
    assert project.run("--otval-severity=fatal", "datasets/demo").status == 4


def test_errors_come_first_in_the_headline(project, tasks):
    tasks(a={**WARNED, "solution/solve.sh": CRLF})
    project.run("-m", "static", "--otval-severity=warning", "datasets/demo/tasks/a")
    headline = project.ledger()[statics("a")[0]]["headline"]
    assert headline.startswith("solution/solve.sh:1: text-crlf: ")
    assert headline.endswith("(and 1 more)")


def test_what_is_allowed_fails_nothing_and_is_recorded(project, tasks):
    toml = f'{SOUND["task.toml"]}[metadata.otval.allow]\nentries-link-dangling = "the image makes it"\n'
    tasks(a={**WARNED, "task.toml": toml})
    assert project.run("-m", "static", "--otval-severity=warning", "datasets/demo/tasks/a").status == 0
    assert checks(project) == [("entries-link-dangling", "the image makes it")]


ALLOW = '[[otval.allow]]\ncheck = "entries-link-dangling"\ntasks = "a*"\nreason = "r"\nowner = "ann"\nexpires = {}\n'


def test_what_the_dataset_allows(project, tasks):
    tasks(a=WARNED, b=WARNED, otval=ALLOW.format("2999-01-01"))
    assert project.run("-m", "static", "--otval-severity=warning", "datasets/demo").status == 1
    assert checks(project, "a") == [("entries-link-dangling", "r")]
    assert checks(project, "b") == [("entries-link-dangling", "")]


def test_what_has_expired_allows_nothing(project, tasks):
    tasks(a=WARNED, otval=ALLOW.format("2020-01-01"))
    project.run("-m", "static", "datasets/demo")
    assert checks(project, "a") == [("entries-link-dangling", "")]
    own = project.ledger()["datasets/demo/dataset.toml::static"]
    assert [one["check"] for one in own["checks"] if one["check"].startswith("allow")] == ["allow-expired"]


# --- what is remembered ----------------------------------------------------------------------------------------------


@both
def test_a_second_run_remembers(project, tasks, workers):
    folder = tasks(a={"solution/solve.sh": CRLF}, b=WARNED)
    first = project.process(*workers, "-m", "static", "datasets/demo/tasks")
    before = project.ledger()
    assert (first.status, {line["cached_from"] for line in before.values()}) == (1, {None})
    assert project.process(*workers, "-m", "static", "datasets/demo/tasks").status == 1
    after = project.ledger()
    assert [after[id]["cached_from"] for id in statics("a", "b")] == ["cache/static"] * 2
    told = ("verdict", "class", "headline", "log", "checks", "task_digest", "settings_digest")
    assert [[line[name] for name in told] for line in before.values()] == [
        [after[id][name] for name in told] for id in before
    ]
    (folder / "a" / "solution" / "solve.sh").write_text(SOUND["solution/solve.sh"])
    assert project.process(*workers, "-m", "static", "datasets/demo/tasks").status == 0
    assert project.ledger()[statics("a")[0]]["cached_from"] is None


def test_a_severity_is_judged_anew(project, tasks):
    tasks(a=WARNED)
    assert project.run("-m", "static", "datasets/demo/tasks/a").status == 0
    assert project.run("-m", "static", "--otval-severity=warning", "datasets/demo/tasks/a").status == 1
    assert project.ledger()[statics("a")[0]]["cached_from"]


def test_a_check_of_a_conftest_is_asked_when_it_changes(project, tasks):
    tasks(a={})
    source = (
        "from pytest_otval.checks.registry import Check, Place\nfrom pytest_otval.core import Severity\n"
        "def look(context):\n    yield Place('task.toml', '{}')\n"
        "def pytest_otval_checks():\n    return [Check('x-y', Severity.INFO, 'x', 'e', 'f', look)]\n"
    )
    for word in ("one", "one", "two"):
        project.pytester.makeconftest(source.format(word))
        project.process("-m", "static", "datasets/demo/tasks/a")
        line = project.ledger()[statics("a")[0]]
        assert [one["message"] for one in line["checks"]] == [word]
        project.runs[-1].joinpath("cached").write_text(str(line["cached_from"]))
    assert [(run / "cached").read_text() for run in project.runs] == ["None", "cache/static", "None"]


# --- what is repaired ------------------------------------------------------------------------------------------------


@both
def test_what_can_be_repaired_is_and_the_second_time_nothing_changes(project, tasks, workers):
    folder = tasks(a=BROKEN, sound={})
    first = project.process(*workers, "-m", "static", "--otval-fix", "datasets/demo/tasks")
    assert first.status == 0, first.lines
    wanted = {**SOUND, **BROKEN, "solution/solve.sh": SOUND["solution/solve.sh"]}
    wanted["task.toml"] = OLD.replace("version", "schema_version", 1)
    wanted["tests/run.sh"] = BROKEN["tests/run.sh"][1]
    repaired = contents(folder)
    assert {str(path): text.decode() for path, (text, _) in contents(folder / "a").items()} == wanted
    assert (folder / "a" / "tests" / "run.sh").stat().st_mode & 0o777 == 0o750
    shown = "\n".join(first.lines)
    for text in (
        "otval: fixed datasets/demo/tasks/a/solution/solve.sh (text-crlf)",
        "-echo 42 > /app/answer.txt\\r\n+#!/bin/bash\n",
        "otval: fixed datasets/demo/tasks/a/tests/run.sh (scripts-exec-bit)",
        "old mode 100640\nnew mode 100750",
        '-version = "1.4" # old\n+schema_version = "1.4" # old\n',
    ):
        assert text in shown, shown
    line = project.ledger()[statics("a")[0]]
    assert sorted(fix["path"] for fix in line["fixes"]) == ["solution/solve.sh", "task.toml", "tests/run.sh"]
    assert line["checks"] == []
    second = project.process(*workers, "-m", "static", "--otval-fix", "datasets/demo/tasks")
    assert (second.status, contents(folder)) == (0, repaired)
    assert not [text for text in second.lines if text.startswith("otval: fixed")]
    assert project.ledger()[statics("a")[0]]["task_digest"] == line["task_digest"]


def test_other_stages_see_the_repaired_task(project, tasks):
    tasks(a=BROKEN)
    assert project.run("--otval-fix", "datasets/demo/tasks/a").status == 0
    assert len({line["task_digest"] for line in project.ledger().values()}) == 1


def test_only_selected_tasks_are_repaired(project, tasks):
    folder = tasks(a=BROKEN, b=BROKEN)
    before = contents(folder / "b")
    project.run("-m", "static", "--otval-fix", "--otval-tasks=a", "datasets/demo")
    assert contents(folder / "b") == before


def test_without_the_option_nothing_is_changed(project, tasks):
    folder = tasks(a=BROKEN)
    before = contents(folder)
    assert project.run("-m", "static", "datasets/demo/tasks").status == 1
    assert contents(folder) == before


def test_listing_repairs_nothing(project, tasks):
    folder = tasks(a=BROKEN)
    before = contents(folder)
    project.run("--co", "--otval-fix", "datasets/demo/tasks")
    assert contents(folder) == before


def test_a_linked_task_is_not_repaired_and_that_is_told(project, tasks, tmp_path):
    folder = tasks()
    write_task(tmp_path / "elsewhere", BROKEN)
    before = contents(tmp_path / "elsewhere")
    (folder / "a").parent.mkdir(exist_ok=True)
    (folder / "a").symlink_to(tmp_path / "elsewhere")
    outcome = project.run("-m", "static", "--otval-fix", "datasets/demo/tasks/a")
    assert outcome.status == 1
    assert any(line.startswith("otval: not fixed: datasets/demo/tasks/a/solution/solve.sh") for line in outcome.lines)
    assert contents(tmp_path / "elsewhere") == before


def test_without_static_it_is_refused(project, tasks):
    tasks(a=BROKEN)
    assert "--otval-fix" in project.run("-m", "oracle", "--otval-fix", "datasets/demo").refusal


@pytest.mark.parametrize("form", ["tar", "parquet"])
def test_packed_tasks_are_refused(project, tasks, tmp_path, form):
    from pytest_otval.__main__ import main

    folder = tasks(a=BROKEN)
    assert main(["dataset", "pack", str(folder.parent), "--to", form, str(tmp_path / "packed" / "demo")]) == 0
    refusal = project.run("-m", "static", "--otval-fix", tmp_path / "packed" / "demo").refusal
    assert "dataset unpack" in refusal
    assert "\n" not in refusal


def test_the_ledger_is_plain_json(project, tasks):
    tasks(a=BROKEN)
    project.run("-m", "static", "--otval-fix", "datasets/demo/tasks/a")
    (line,) = [line for line in read_ledger(project.runs[-1]) if line["kind"] == "result"]
    assert json.loads(json.dumps(line)) == line


# --- linters ---------------------------------------------------------------------------------------------------------


def test_linters_are_asked_where_they_are_wanted(tasks, project):
    tasks(a={"solution/solve.sh": "#!/bin/bash\nif [ 1.5 -gt 1 ]; then echo 42 > /app/answer.txt; fi\n"})
    assert project.process("datasets/demo", "-m", "static").status == 0
    assert "lint-shell" not in dict(checks(project))
    assert project.process("datasets/demo", "-m", "static", "--otval-linters").status == 1
    found = [one for one in project.ledger()[statics("a")[0]]["checks"] if one["check"] == "lint-shell"]
    assert {(one["path"], one["line"]) for one in found} == {("solution/solve.sh", 2)}
    assert "SC2072" in {one["message"].partition(":")[0] for one in found}
    assert list((project.workspace / "cache" / "lint").iterdir()), "answers are kept"
