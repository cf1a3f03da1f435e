"""From the ledger to rows of attempts, and what they add up to in a summary."""

import pytest

from pytest_otval.__main__ import main
from pytest_otval.core import OtvalUsageError
from pytest_otval.glue.lines import for_reports
from pytest_otval.llm.attempts import read_attempts
from pytest_otval.report.attempt_summary import attempt_lines
from pytest_otval.report.attempts import attempts_of, brief_attempts, planned_attempts
from pytest_otval.report.properties import properties
from pytest_otval.report.results import read_results, row_of
from pytest_otval.report.summary import summarise, summary_lines
from selftests.report.ledgers import attempt, attempts, line, make_run


@pytest.fixture
def read(tmp_path):
    """Write a run of lines and return its attempts."""
    return lambda *lines: list(attempts_of(read_results(make_run(tmp_path / "run", *lines))))


def rows(*lines):
    return [row_of(one.as_dict()) for one in lines]


# --- rows ---


def test_all_that_is_known_of_an_attempt(read):
    flags = ["touched-tests"]
    told = {"flags": flags, "truncated": True, "finish": "steps", "memory_kills": 1, "changed_files": 3}
    (found,) = read(attempt("+", number=2, seconds={"agent": 3.0, "total": 4.0}, repository="org/it", **told))
    assert (found.dataset, found.task, found.model, found.attempt) == ("demo", "a", "m", 2)
    assert (found.cluster, found.agent, found.reward, found.outcome) == ("org/it", "tools", 1.0, "solved")
    assert (found.prompt_tokens, found.completion_tokens, found.usd) == (90, 10, 0.5)
    assert (found.flags, found.truncated, found.finish) == (("touched-tests",), True, "steps")
    assert (found.memory_kills, found.changed_files) == (1, 3)
    assert found.seconds == {"agent": 3.0, "total": 4.0}
    assert (found.statistics.steps, found.statistics.kinds) == (5, {"edit": 2})


def test_what_is_an_attempt_and_what_it_is(read):
    lines = [
        *attempts("+-x!"),
        attempt("-", number=4, reason="no-gpu", verdict="n/a"),
        attempt("-", number=5, reason="image-failed", verdict="blocked"),
        line("a", "oracle"),
    ]
    assert [one.outcome for one in read(*lines)] == ["solved", "unsolved", "invalid", "error"]


def test_an_attempt_without_a_trajectory(read):
    (found,) = read(attempt("!", trajectory=None))
    assert (found.tokens, found.usd, found.statistics.steps, found.outcome) == (0, None, 0, "error")


def test_images_make_clusters_only_where_they_differ(read):
    other = {"key": "k", "base": "other"}
    assert {one.cluster for one in read(attempt("+", "a"), attempt("+", "b"))} == {""}
    found = read(attempt("+", "a"), attempt("+", "b", image=other), attempt("+", "c", repository="org/it"))
    assert [one.cluster for one in found] == ["debian:bookworm", "other", "org/it"]


@pytest.mark.parametrize(("image", "cluster"), [("debian:bookworm", ""), ("other", "other")])
def test_an_attempt_that_broke_off_early_is_of_its_tasks_cluster(read, image, cluster):
    early = attempt("!", "a", image=None)
    found = read(early, attempt("+", "a", number=1, image={"key": "k", "base": image}), attempt("+", "b"))
    assert [one.cluster for one in found][:2] == [cluster, cluster]


def test_what_pytest_carries_is_enough_for_a_summary():
    lines = attempts("+-x!", flags=["touched-tests"], truncated=True, repository="org/it")
    briefly = [row_of(for_reports(one)) for one in lines]
    assert list(brief_attempts(briefly)) == list(brief_attempts(rows(*lines)))
    assert list(attempt_lines(briefly, 4)) == list(attempt_lines(rows(*lines), 4))


@pytest.mark.parametrize("told", [{"prompt_tokens": "many"}, {"flags": 3}, {"statistics": {"steps": []}}])
def test_lines_of_others_are_refused(read, told):
    with pytest.raises(OtvalUsageError, match="no version of ours wrote"):
        read(attempt("+", **told))


def test_what_later_versions_know_is_left_out(read):
    (found,) = read(attempt("+", statistics={"novel": 1}, novel=2))
    assert found.statistics.steps == 5


def test_runs_without_attempts_are_told(read):
    with pytest.raises(OtvalUsageError, match="no attempts of models: run pytest with -m teacher"):
        read(line())


@pytest.mark.parametrize(
    ("facts", "planned"), [({"run_settings": {"k": 4}}, 4), ({}, None), ({"run_settings": {}}, None)]
)
def test_planned_attempts(facts, planned):
    assert planned_attempts(facts) == planned


def test_junit_has_properties_of_attempts():
    (row,) = rows(attempt("+", flags=["touched-tests", "solved-without-change"]))
    told = dict(properties(row))
    assert {name: told[name] for name in ("model", "finish", "flags", "tokens")} == {
        "model": "m",
        "finish": "submitted",
        "flags": "touched-tests, solved-without-change",
        "tokens": "100",
    }


# --- the command ---


def report(*words):
    return main(["report", *map(str, words)])


def test_attempts_as_a_parquet_file(tmp_path, capsys):
    run, file = make_run(tmp_path / "run", *attempts("+-x!"), line()), tmp_path / "attempts.parquet"
    assert report(run, "--attempts", file, "--select", "model == 'm' and attempt < 3") == 0
    assert list(read_attempts([file])) == list(attempts_of(read_results(run)))[:3]
    assert report("diff", run, run, "--attempts", file) == 4
    assert "report diff knows --select and --json only" in capsys.readouterr().err


# --- the summary ---


def texts(*lines, planned=None):
    return [text.text for text in attempt_lines(rows(*lines), planned)]


def test_a_summary_of_several_tasks():
    lines = attempts("++--", "a") + attempts("+--x", "b", flags=["touched-tests"]) + attempts("--!", "c")
    assert texts(*lines, planned=4) == [
        "attempts of m at demo: 3 tasks; 12 planned, 11 ran, 2 excluded (1 error, 1 invalid), 3 solved",
        "     k   tasks  pass@k                  tasks  without invalid ones    pass^k",
        "     1       3  0.250 (0.000 to 0.500)      3  0.278 (0.000 to 0.500)  0.278",
        "     2       3  0.444 (0.000 to 0.833)      3  0.500 (0.000 to 0.833)  0.056",
        "     4       2  1.000 (0.342 to 1.000)      1  1.000                   0.000",
        "        3 clusters are few: the interval is too narrow",
        "        1 task never solved, 0 of 2 still allows a rate up to 66 %: c",
        "        to look at: 1 of 3 solved attempts are flagged; of all: touched-tests 4",
    ]


def test_a_lone_task_has_its_own_interval():
    assert texts(*attempts("-" * 16))[1:] == [
        "     k   tasks  pass@k                  tasks  without invalid ones    pass^k",
        "     1       1  0.000 (0.000 to 0.194)      1  0.000 (0.000 to 0.194)  0.000",
        "     2       1  0.000                       1  0.000                   0.000",
        "     4       1  0.000                       1  0.000                   0.000",
        "     8       1  0.000                       1  0.000                   0.000",
        "    16       1  0.000                       1  0.000                   0.000",
        "        1 task never solved, 0 of 16 still allows a rate up to 19 %: a",
    ]


def test_where_there_were_only_errors_nothing_is_estimated():
    assert texts(*attempts("!!")) == [
        "attempts of m at demo: 1 task; 2 planned, 2 ran, 2 excluded (2 errors, 0 invalid), 0 solved"
    ]


def test_each_model_has_its_table():
    found = texts(attempt("+", model="m"), attempt("-", model="n"))
    assert [text.split(":")[0] for text in found if text.startswith("attempts")] == [
        "attempts of m at demo",
        "attempts of n at demo",
    ]


def test_many_tasks_that_are_never_solved_are_one_line():
    lines = [attempt("-", f"task-{number}") for number in range(5)]
    assert (
        texts(*lines)[-1]
        == "        5 tasks never solved, 0 of 1 still allows a rate up to 79 %: task-0, task-1, task-2, ..."
    )


def test_names_of_models_and_flags_cannot_steer_a_terminal():
    evil = "\x1b[2J\u202e" + "x" * 200
    found = texts(attempt("+", model=evil, flags=[evil]), attempt("-", evil, model=evil))
    assert all("\x1b" not in text and "\u202e" not in text and len(text) <= 190 for text in found)


def test_it_stands_in_the_summary_of_a_run(tmp_path):
    summary = [text.text for text in summary_lines(summarise(rows(*attempts("+-"), line())), tmp_path, 4)]
    assert "attempts of m at demo: 1 task; 4 planned, 2 ran, 0 excluded, 1 solved" in summary
    assert max(map(len, summary)) <= 100
