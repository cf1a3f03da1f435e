"""What pytest itself tells of attempts: its summary, and the way from pytest-html's page to ours."""

import pytest

from pytest_otval.report.results import read_results

pytest_plugins = ["pytester"]

TEACH = ("-m", "teacher", "--otval-teacher", "m", "--otval-base-url", "http://127.0.0.1:9/v1")
TABLE = [
    "attempts of m at demo: 2 tasks; 8 planned, 8 ran, 4 excluded (2 errors, 2 invalid), 2 solved",
    "     k   tasks  pass@k                  tasks  without invalid ones    pass^k",
]


@pytest.mark.parametrize("workers", ["0", "2"])
def test_the_summary_has_a_table_of_each_model(project, workers):
    answers = "expected|unsolved it scored 0.25|no-reward|endpoint-failed"
    project.dataset(tasks={"a": {"teacher": answers}, "b": {"teacher": answers}})
    outcome = project.process("datasets/demo", *TEACH, "--otval-k=4", "-n", workers)
    at = outcome.lines.index(TABLE[0])
    assert outcome.lines[at + 1] == TABLE[1]
    assert outcome.lines[at + 2].split()[:3] == ["1", "2", "0.333"]


def test_the_pages_are_linked_from_the_page_of_pytest_html(project):
    project.dataset()
    project.run("datasets/demo", *TEACH, "--html=report.html")
    assert 'href="report-otval/models.html"' in (project.root / "report.html").read_text()
    assert (project.root / "report-otval/models.html").is_file()
    assert read_results(project.runs[-1]).facts["run_settings"]["k"] == 1


def test_without_attempts_there_is_no_link(project):
    project.dataset()
    project.run("datasets/demo", "-m", "noop", "--html=report.html")
    assert "models.html" not in (project.root / "report.html").read_text()
