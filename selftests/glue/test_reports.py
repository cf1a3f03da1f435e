"""junit, html and progress: what readers of them see, and that nothing of a task gets into a page as markup."""

import html
import json
import re
from xml.etree import ElementTree

import pytest

from pytest_otval.__main__ import main
from pytest_otval.glue.progress import duration
from selftests.glue.conftest import ids
from selftests.report.chromium import dom, needs_chromium

pytest_plugins = ["pytester"]

EVIL = "<script>alert(1)</script>"


def rows(project):
    """Return the rows of report.html by test id, as pytest-html's script finds them."""
    (blob,) = re.findall(r'data-jsonblob="([^"]*)"', (project.root / "report.html").read_text())
    return {id: row for id, (row,) in json.loads(html.unescape(blob))["tests"].items()}


def test_junit_tells_errors_from_failures(project):
    project.dataset(tasks={"a": {"build": "no-start x", "oracle": f"wrong-reward {EVIL}\x1b\x00", "noop": "compose"}})
    project.run("datasets/demo/tasks/a", "--junitxml=junit.xml")
    cases = {case.get("name"): case for case in ElementTree.parse("junit.xml").iter("testcase")}
    marks = {name: [child.tag for child in case if child.tag != "properties"] for name, case in cases.items()}
    assert marks == {"static": [], "build": ["error"], "oracle": ["failure"], "noop": ["skipped"]}
    assert {case.get("classname") for case in cases.values()} == {"datasets.demo.tasks.a.task.toml"}
    assert EVIL in cases["oracle"].find("failure").text
    assert cases["oracle"].find("failure").get("message").startswith("StageFailure: wrong-reward: <script>")
    assert properties(cases["oracle"]) == {
        "verdict": "fail",
        "class": "wrong-reward",
        "stage": "oracle",
        "score": "0.25",
        "seconds": "0.500",
        "image": "bootstrap:<b>",
    }


def properties(case):
    return {entry.get("name"): entry.get("value") for entry in case.iter("property")}


def told(path):
    """Return what a junit file says of each case: how it ended, and its properties."""
    cases = ElementTree.parse(path).iter("testcase")
    return {
        (case.get("classname"), case.get("name")): (
            [child.tag for child in case if child.tag != "properties"],
            properties(case),
        )
        for case in cases
    }


@pytest.mark.parametrize("workers", [(), ("-n2",)])
def test_junit_is_the_same_from_the_ledger(project, workers):
    tasks = {
        "a": {"build": "no-start x", "oracle": "wrong-reward low", "noop": "compose"},
        "b": {"oracle": "wrong-reward low", "noop": "image-failed x"},
        "c": {},
    }
    known = "{reason = 'x', owner = 'me', expires = 2999-01-01}"
    project.dataset(tasks=tasks, otval=f"known_bad.b = {known}\nknown_bad.c = {known}")
    project.process("datasets/demo", "--junitxml=during.xml", *workers)
    assert main(["report", str(project.runs[-1]), "--junit", "after.xml"]) == 0
    assert told("during.xml") == told("after.xml")
    suite = ElementTree.parse("after.xml").find("testsuite")
    assert [suite.get(name) for name in ("tests", "failures", "errors", "skipped")] == ["13", "2", "1", "3"]


def test_junit_keeps_properties_of_other_tests(project):
    project.dataset()
    project.pytester.makepyfile(test_plain="def test_one(record_property): record_property('otter', {'a': 1})\n")
    project.run("datasets/demo", "test_plain.py", "--junitxml=junit.xml", "-o", "junit_family=xunit1")
    (case,) = [case for case in ElementTree.parse("junit.xml").iter("testcase") if case.get("name") == "test_one"]
    assert properties(case) == {"otter": "{'a': 1}"}


def test_html_has_our_columns(project):
    project.dataset(tasks={"a": {"oracle": "wrong-reward low"}})
    project.pytester.makepyfile(test_plain="def test_one(): pass\n")
    project.run("datasets/demo/tasks/a", "test_plain.py", "--html=report.html")
    row = rows(project)[ids("a")[2]]["resultsTableRow"]
    texts = [re.sub("<[^>]*>", "", cell) for cell in row]
    assert texts[:2] == ["Failed", ids("a")[2]]
    assert texts[2:7] == ["fail", "wrong-reward", "0.25", "0.50", "bootstrap:&lt;b&gt;"]
    heads = re.findall(r"<th[^>]*>([^<]*)</th>", (project.root / "report.html").read_text())
    assert heads[:7] == ["Result", "Test", "Verdict", "Class", "Score", "Seconds", "Image"]
    plain = rows(project)["test_plain.py::test_one"]["resultsTableRow"]
    assert len(plain) == len(row)


def test_html_escapes_what_a_task_says(project):
    dataset = project.dataset(
        tasks={"a": {stage: f"{reason} {EVIL}" for stage, reason in [("oracle", "wrong-reward"), ("noop", "no-start")]}}
    )
    project.run("datasets/demo", "--html=report.html", "--self-contained-html")
    assert EVIL not in (project.root / "report.html").read_text()
    for row in rows(project).values():
        assert "<script" not in row["log"] + "".join(row["resultsTableRow"])
    project.task(dataset / "tasks" / EVIL.replace("/", ""))
    assert project.run("datasets/demo", "--html=report.html").status == 2
    (row,) = rows(project).values()
    assert "<script" not in row["log"] + "".join(row["resultsTableRow"])


@needs_chromium
@pytest.mark.integration
def test_html_in_a_browser(project, tmp_path):
    """pytest-html makes markup of cells and logs, so what tasks say must be escaped before."""
    run_me = "<img src=x onerror=\"document.title='canary'\"><script>document.title='canary'</script>"
    project.dataset(tasks={"a": {"oracle": f"wrong-reward {run_me}", "noop": f"no-start {run_me}"}})
    project.run("datasets/demo/tasks/a", "--html=report.html", "--self-contained-html")
    page = dom(project.root / "report.html", tmp_path / "home")
    assert page.all("title")[0].text == "report.html"
    shown = [cell.text for cell in page.all("td", class_="col-verdict")]
    assert sorted(shown) == ["error", "fail", "pass", "pass"]
    assert [log.text for log in page.all("div", class_="log") if "canary" in log.text]
    assert not page.all("img", src="x")


def test_html_links_to_our_own_pages_and_leaves_logs_to_them(project):
    project.dataset(tasks={"a": {"oracle": "wrong-reward low"}})
    outcome = project.run("datasets/demo/tasks/a", "--html=report.html")
    row = rows(project)[ids("a")[2]]
    (link,) = re.findall('href="([^"]*)"', row["resultsTableRow"][-1])
    assert link == "report-otval/index.html#row=datasets%2Fdemo%2Ftasks%2Fa%2Ftask.toml%3A%3Aoracle"
    text = (project.root / "report.html").read_text()
    assert '<a href="report-otval/index.html">All 4 results of tasks' in text
    assert row["log"] == "wrong-reward: low"
    assert "last line" not in text
    assert "last line" in (project.root / "report-otval/details/0.js").read_text()
    assert any("report-otval/index.html" in line for line in outcome.lines)


@pytest.mark.parametrize("workers", [(), ("-n2",)])
def test_html_lists_the_first_rows_only(project, workers):
    (project.root / "conftest.py").write_text("from pytest_otval.glue import html\nhtml.MOST_ROWS = 3\n")
    project.dataset(tasks={"a": {"oracle": "wrong-reward low", "noop": "no-start x"}, "b": {}})
    project.pytester.makepyfile(test_plain="def test_one(): pass\n")
    project.process("datasets/demo", "test_plain.py", "--html=report.html", *workers)
    shown = rows(project)
    assert len(shown) == 4 and "test_plain.py::test_one" in shown
    text = (project.root / "report.html").read_text()
    assert "All 9 results of tasks" in text and "Only 3 of them are listed" in text
    assert '"count":9' in (project.root / "report-otval/rows.js").read_text()


def test_html_keeps_what_another_folder_holds(project):
    project.dataset(tasks={"a": {}})
    own = project.root / "report-otval"
    own.mkdir()
    (own / "index.html").write_text("mine")
    assert project.run("datasets/demo", "--html=report.html").status == 0
    assert [path.name for path in own.iterdir()] == ["index.html"]
    assert "report-otval holds other files than our pages" in (project.root / "report.html").read_text()


def test_html_of_other_tests_alone_has_no_pages_of_ours(project):
    project.pytester.makepyfile(test_plain="def test_one(): pass\n")
    project.run("test_plain.py", "--html=report.html")
    assert not (project.root / "report-otval").exists()


# --- progress ---

STEP = """
import pytest
from pytest_otval.glue import progress

now = [0.0]

@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    plugin = config.pluginmanager.getplugin("otval-progress")
    if plugin is not None:
        plugin._clock = lambda: now[0]

@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport(report):
    now[0] += {seconds} * progress.decides(report)
"""


def told_progress(project, seconds, *args):
    """Run 21 items that seem to take as long, and return the lines of progress."""
    project.dataset(tasks={name: {"oracle": "wrong-reward low"} for name in "abcde"})
    (project.root / "conftest.py").write_text(STEP.replace("{seconds}", str(seconds)))
    outcome = project.process("datasets/demo", *args)
    assert outcome.status == 1
    return [line for line in outcome.lines if line.startswith("otval: ") and " of 21 " in line]


@pytest.mark.parametrize("args", [(), ("-q",), ("-v",), ("-n2",), ("-n2", "-q"), ("-p", "no:xdist")], ids=" ".join)
def test_progress_is_told_on_lines_of_its_own(project, args):
    lines = told_progress(project, 30, *args)
    # A tenth of 21 items is 3.
    assert [line.partition("(")[0] for line in lines] == [f"otval: {done} of 21 " for done in range(2, 21, 2)]
    assert lines[0].endswith("about 10 min left") and lines[-1].endswith("about 30 s left")
    assert re.fullmatch(r"otval: 20 of 21 \(95 %\): 1[56] pass, [45] fail; about 30 s left", lines[-1])


def test_progress_of_many_quick_items_is_no_flood(project):
    # 21 items in 84 s: each tenth would be 6 s.
    lines = told_progress(project, 4)
    assert [line.partition("(")[0] for line in lines] == [f"otval: {done} of 21 " for done in range(3, 21, 3)]


def test_progress_is_silent_in_short_and_very_quiet_runs(project):
    assert told_progress(project, 0) == []
    (project.root / "datasets").rename(project.root / "old")
    assert told_progress(project, 30, "-qq") == []


def test_progress_says_nothing_to_other_tests(project):
    (project.root / "conftest.py").write_text(STEP.replace("{seconds}", "100"))
    project.pytester.makepyfile(test_plain="def test_one(): pass\ndef test_two(): pass\n")
    assert not [line for line in project.process("test_plain.py").lines if " of 2 " in line]


def test_durations_read_well():
    assert [duration(seconds) for seconds in (0, 89, 90, 3600, 5400, 100_000)] == [
        "0 s",
        "89 s",
        "2 min",
        "60 min",
        "1 h 30 min",
        "27 h 47 min",
    ]
