"""From verdicts to letters, counts and exit statuses."""

import pytest

from selftests.glue.conftest import ids

pytest_plugins = ["pytester"]

FAIL, ERROR, BLOCKED, NA = "wrong-reward low", "no-start slow", "image-failed", "compose"


@pytest.mark.parametrize(
    ("answers", "status", "counts"),
    [
        ({}, 0, {"passed": 2}),
        ({"oracle": FAIL}, 1, {"failed": 1, "passed": 1}),
        ({"oracle": ERROR}, 8, {"passed": 1, "error": 1}),
        ({"oracle": FAIL, "noop": ERROR}, 1, {"failed": 1, "error": 1}),
        ({"oracle": BLOCKED}, 1, {"passed": 1, "blocked": 1}),
        ({"oracle": BLOCKED, "noop": BLOCKED}, 1, {"blocked": 2}),
        ({"oracle": NA}, 0, {"passed": 1, "n/a": 1}),
        ({"oracle": NA, "noop": NA}, 5, {"n/a": 2}),
        ({"oracle": NA, "noop": ERROR}, 8, {"n/a": 1, "error": 1}),
        ({"oracle": "raise boom"}, 8, {"passed": 1, "error": 1}),
    ],
)
def test_verdicts_decide_the_exit_status(project, answers, status, counts):
    project.dataset(tasks={"a": answers})
    outcome = project.run(*ids("a", stages=("oracle", "noop")))
    assert (outcome.status, outcome.counts) == (status, counts)


def test_with_workers_the_same(project):
    project.dataset(tasks={"a": {"oracle": FAIL}, "b": {"noop": BLOCKED}, "c": {"static": ERROR, "noop": NA}})
    alone, shared = project.run("datasets/demo"), project.process("-n2", "datasets/demo")
    assert alone.status == shared.status == 1
    assert alone.counts == shared.counts == {"failed": 1, "passed": 9, "blocked": 1, "n/a": 1, "error": 1}
    lines = [project.ledger()]
    project.runs.pop()
    lines.append(project.ledger())
    varying = {"time", "evidence"}
    first, second = ({id: {k: line[k] for k in line.keys() - varying} for id, line in run.items()} for run in lines)
    assert first == second


def test_nothing_selected(project):
    project.dataset()
    assert project.run("datasets/demo", "-k", "nowhere").status == 5


def test_letters(project):
    project.dataset(tasks={"a": {"static": BLOCKED, "build": NA, "oracle": FAIL, "noop": ERROR}})
    (line,) = [line for line in project.run("datasets/demo/tasks/a", "-q").lines if line.endswith("[100%]")]
    assert line.split()[0] == "BnFE"


def test_a_failure_of_an_ordinary_test_counts_as_ever(project):
    project.dataset(tasks={"a": {"oracle": ERROR}})
    project.pytester.makepyfile(test_plain="def test_one(): assert 0\n")
    assert project.run("datasets/demo", "test_plain.py").status == 1
    project.pytester.makepyfile(test_plain="import pytest\ndef test_one(): pytest.skip()\n")
    assert project.run("test_plain.py").status == 0


def test_a_failure_shows_the_answer_and_no_traceback(project):
    project.dataset(tasks={"a": {"oracle": FAIL}})
    outcome = project.run("datasets/demo")
    at = next(number for number, line in enumerate(outcome.lines) if "a · oracle" in line)
    reproduce = f'reproduce: pytest "{ids("a")[2]}" --otval-keep'
    assert outcome.lines[at + 1 : at + 6] == ["wrong-reward: low", "", "  | last line", "", reproduce]


def test_a_bug_of_ours_shows_its_traceback_and_has_a_line(project):
    project.dataset(tasks={"a": {"oracle": "raise boom"}})
    outcome = project.run("datasets/demo")
    assert "internal: RuntimeError: boom" in outcome.lines
    assert any("raise RuntimeError(headline)" in line for line in outcome.lines)
    line = project.ledger()[ids("a")[2]]
    assert (line["verdict"], line["class"], line["retries"]) == ("error", "internal", 0)


def test_only_errors_are_asked_again(project):
    project.dataset(tasks={"a": {"oracle": ERROR, "noop": FAIL}})
    project.run("datasets/demo")
    retries = {line["stage"]: line["retries"] for line in project.ledger().values()}
    assert retries == {"static": 0, "build": 0, "oracle": 2, "noop": 0}


def test_a_broken_task_fails_and_stops_nothing(project):
    dataset = project.dataset()
    (dataset / "tasks/a/task.toml").write_text("[agent\n")
    outcome = project.run("datasets/demo")
    assert (outcome.status, outcome.counts) == (1, {"failed": 4, "passed": 5})
    assert {project.ledger()[id]["class"] for id in ids("a")} == {"bad-task"}


def test_a_machine_without_containers_still_answers_static(project, monkeypatch):
    project.dataset(tasks={"a": {}})
    monkeypatch.setenv("STUB_TROUBLE", "missing-tool")
    outcome = project.run("datasets/demo")
    assert (outcome.status, outcome.counts) == (8, {"passed": 2, "error": 3})
    assert "missing-tool: no containers here" in outcome.lines


def test_broken_settings_of_a_dataset_fail_its_own_item(project):
    project.dataset(otval="oracle_min = 'high'")
    outcome = project.run("datasets/demo/dataset.toml")
    assert (outcome.status, outcome.counts) == (1, {"failed": 1})


def test_stop_at_the_first_failure(project):
    project.dataset(tasks={"a": {"build": FAIL}})
    outcome = project.run("datasets/demo", "-x")
    assert (outcome.status, outcome.counts) == (1, {"failed": 1, "passed": 2})
    assert list(project.ledger()) == ["datasets/demo/dataset.toml::static", *ids("a")[:2]]


def test_last_failed(project):
    project.dataset(tasks={"a": {"oracle": FAIL}, "b": {"noop": ERROR}})
    project.run("datasets/demo")
    assert project.collect("datasets/demo", "--lf") == [ids("a")[2], ids("b")[3]]
    assert project.collect("datasets/demo", "--ff")[:2] == [ids("a")[2], ids("b")[3]]


def test_the_summary_counts_stages(project):
    project.dataset(tasks={"a": {"oracle": FAIL}, "b": {}})
    lines = project.run("datasets/demo").lines
    (row,) = [line.split() for line in lines if line.startswith("oracle ")]
    assert row == ["oracle", "1", "1", "0", "0", "0", "0", "0", "0.50"]
    at = lines.index("     1 x oracle: wrong-reward: last line")
    assert lines[at + 1] == "         a"
    assert f"ledger: {project.runs[-1]}/ledger" in lines


def test_the_summary_is_the_same_from_the_ledger(project, capsys):
    from pytest_otval.__main__ import main

    project.dataset(
        tasks={"a": {"oracle": FAIL, "noop": NA}, "b": {"build": ERROR, "noop": BLOCKED}, "c": {"oracle": FAIL}},
        otval=KNOWN.format(""),
    )
    lines = project.process("-n2", "datasets/demo").lines
    start = next(number for number, line in enumerate(lines) if line.startswith("stage "))
    end = next(number for number, line in enumerate(lines) if line.startswith("ledger: "))
    capsys.readouterr()
    assert main(["report", str(project.runs[-1])]) == 0
    again = capsys.readouterr().out.splitlines()
    assert again == lines[start : end + 1]


def test_a_known_bad_task_is_counted_as_known_bad(project):
    project.dataset(tasks={"a": {"oracle": FAIL}, "b": {}}, otval=KNOWN.format(""))
    lines = project.run("datasets/demo").lines
    (row,) = [line.split() for line in lines if line.startswith("oracle ")]
    assert row == ["oracle", "1", "0", "0", "0", "0", "0", "1", "0.50"]
    assert "known bad, as dataset.toml says: 1: a" in lines
    assert not [line for line in lines if line.startswith("to look at")]


KNOWN = "known_bad.a = {{reason = 'no mirror', owner = 'me', expires = 2999-01-01{}}}"


@pytest.mark.parametrize(
    ("stages", "answers", "status", "counts"),
    [
        ("", {"oracle": FAIL}, 0, {"passed": 4, "xfailed": 1}),
        ("", {}, 1, {"failed": 1, "passed": 4}),
        ("", {"oracle": ERROR}, 8, {"passed": 4, "error": 1}),
        ("", {"oracle": FAIL, "noop": FAIL}, 1, {"failed": 1, "passed": 3, "xfailed": 1}),
        (", stages = ['oracle', 'noop']", {"oracle": FAIL, "noop": FAIL}, 0, {"passed": 3, "xfailed": 2}),
        (", stages = ['build']", {"build": FAIL, "oracle": BLOCKED, "noop": BLOCKED}, 0, {"passed": 2, "xfailed": 3}),
        ("", {"oracle": BLOCKED}, 1, {"passed": 4, "blocked": 1}),
        ("", {"oracle": NA}, 0, {"passed": 4, "n/a": 1}),
    ],
)
def test_known_bad_tasks_are_expected_to_fail(project, stages, answers, status, counts):
    project.dataset(tasks={"a": answers}, otval=KNOWN.format(stages))
    outcome = project.run("datasets/demo")
    assert (outcome.status, outcome.counts) == (status, counts)


def test_a_known_bad_task_says_why(project):
    project.dataset(tasks={"a": {}}, otval=KNOWN.format(""))
    assert "[XPASS(strict)] known bad until 2999-01-01 (me): no mirror" in project.run("datasets/demo").lines


def test_an_expired_entry_expects_nothing(project):
    project.dataset(tasks={"a": {"oracle": FAIL}}, otval=KNOWN.format("").replace("2999", "2001"))
    assert project.run("datasets/demo").status == 1


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_phases_that_say_nothing_are_not_looked_through_for_each_failure(project, monkeypatch, workers):
    project.dataset(tasks={"a": {"oracle": FAIL}, "b": {}})
    (project.root / "conftest.py").write_text(
        "import pytest\n"
        "@pytest.hookimpl(tryfirst=True)\n"
        "def pytest_terminal_summary(terminalreporter):\n"
        "    print('kept', [report.when for report in terminalreporter.stats.get('', ())])\n"
        "def pytest_runtest_teardown(item):\n"
        "    if item.name == 'oracle':\n"
        "        print('left', item.nodeid)\n"
    )
    run = project.run if workers == "-n0" else project.process
    lines = run(workers, "-m", "oracle", "datasets/demo").lines
    assert "kept ['teardown', 'teardown']" in lines
    assert "left datasets/demo/tasks/a/task.toml::oracle" in lines  # beside its failure
