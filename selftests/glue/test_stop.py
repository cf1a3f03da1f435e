"""--otval-stop-if, and the machine's errors in a row: no more items start."""

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.core import OtvalUsageError
from pytest_otval.glue.stop import LEAST_ANSWERS, SAME_ERRORS, STOPPED, Rule, Watch
from selftests.glue.conftest import ids

pytest_plugins = ["pytester"]

VERDICTS = {"expected": "pass", "wrong-reward": "fail", "flaky": "fail", "image-failed": "blocked", "compose": "n/a"}


def answer(reason="expected", known_bad="", image_key="k"):
    return {
        "verdict": VERDICTS.get(reason, "error"),
        "class": reason,
        "known_bad": known_bad,
        "image_key": image_key,
    }


def stops_at(rule, answers):
    """Return how many answers it takes, and the decision."""
    watch = Watch(Rule.parse(rule) if rule else None)
    for number, one in enumerate(answers, start=1):
        decision = watch.add(one)
        if decision is not None:
            return number, decision
    return None, None


GOOD, LOST, BAD = answer(), answer("killed"), answer("wrong-reward")


@pytest.mark.parametrize(
    ("rule", "answers", "number"),
    [
        ("infra > 2", [LOST, GOOD, LOST, LOST], 4),
        ("infra >= 2", [LOST, GOOD, LOST, LOST], 3),
        ("infra>2", [LOST] * 3, 3),
        ("infra > 0", [GOOD, BAD, LOST], 3),
        ("infra > 2", [BAD] * 40, None),
        ("fail > 1", [BAD, LOST, BAD], 3),
        ("fail > 1", [BAD, answer("flaky"), BAD], 2),
        ("flaky > 1", [BAD, answer("flaky"), BAD, answer("flaky")], 4),
        ("blocked >= 1", [BAD, answer("image-failed")], 2),
        ("fail >= 1", [answer("wrong-reward", known_bad="known")], None),
        ("infra > 5%", [LOST] * 19, None),
        ("infra > 5%", [LOST] * 19 + [GOOD], 20),
        ("infra > 5%", [LOST] + [GOOD] * 100, None),
        ("infra >= 5 %", [LOST] + [GOOD] * 19, 20),
        ("infra > 5%", [GOOD] * 40 + [LOST] * 3, 43),
        ("fail > 99.5 %", [BAD] * 20, 20),
    ],
)
def test_rules(rule, answers, number):
    found, decision = stops_at(rule, answers)
    assert found == number
    if number:
        assert decision.why.startswith(f"{rule}: ")
        assert decision.blames_machine is rule.startswith("infra")


def test_why_names_the_count_and_the_classes():
    _, decision = stops_at("infra > 2", [LOST, GOOD, LOST, answer("no-start")])
    assert decision.why == "infra > 2: 3 of 4 answers (killed x 2, no-start x 1)"


@pytest.mark.parametrize(
    ("answers", "number"),
    [
        ([LOST] * SAME_ERRORS, SAME_ERRORS),
        ([LOST] * (SAME_ERRORS - 1), None),
        ([LOST, answer("no-start")] * SAME_ERRORS, None),
        (([LOST] * (SAME_ERRORS - 1) + [GOOD]) * 2, None),
        (([LOST] * (SAME_ERRORS - 1) + [BAD]) * 2, None),
        ([LOST, answer(image_key="")] * SAME_ERRORS, 2 * SAME_ERRORS - 1),
        ([GOOD, answer("no-start"), *[LOST] * SAME_ERRORS], SAME_ERRORS + 2),
    ],
)
def test_equal_errors_in_a_row_stop_any_run(answers, number):
    for rule in ("", "fail > 100"):
        found, decision = stops_at(rule, answers)
        assert found == number
        assert number is None or decision.blames_machine


WRONG = ["infra", "infra > ", "infra = 5", "error > 5", "infra < 5", "infra > -1", "infra > 5 items", "infra > 101%"]


@pytest.mark.parametrize("text", [*WRONG, "infra > 0%", "pass > 5", "infra > 5% or fail > 3"])
def test_a_wrong_rule_says_what_is_allowed(text):
    with pytest.raises(OtvalUsageError, match="--otval-stop-if") as error:
        Rule.parse(text)
    assert "\n" not in str(error.value)


@given(st.text(max_size=30) | st.from_regex(r"(infra|fail) ?>=? ?[0-9.]*%?", fullmatch=True))
def test_any_text_is_a_rule_or_refused(text):
    try:
        rule = Rule.parse(text)
    except OtvalUsageError:
        return
    assert rule.kind in text and rule.limit >= 0
    assert not rule.is_met(0, LEAST_ANSWERS) or (not rule.strict and rule.limit == 0)


def tasks(count, **answers):
    return {f"t{number:03}": answers for number in range(count)}


def test_a_wrong_rule_is_a_usage_error(project):
    project.dataset()
    assert project.run("datasets/demo", "--otval-stop-if", "errors > 5").refusal.startswith("--otval-stop-if 'errors")


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["alone", "workers"])
def test_a_stopped_run_starts_no_more_items(project, workers):
    project.dataset(tasks=tasks(40, oracle="no-start slow"))
    options = ("--otval-stop-if", "infra > 5%", "--junitxml=junit.xml", "--html=report.html")
    outcome = project.process("datasets/demo", "-m", "oracle", *workers, *options)
    assert outcome.status == 8
    ledger = project.ledger()
    assert LEAST_ANSWERS <= len(ledger) <= LEAST_ANSWERS + 4, "what ran was finished"
    (line,) = [line for line in outcome.lines if line.startswith("stopped: ")]
    assert line == f"stopped: infra > 5%: 20 of 20 answers (no-start x 20); {40 - len(ledger)} items were not run"
    cases = [case.get("name") for case in ElementTree.parse("junit.xml").iter("testcase")]
    assert len(cases) == len(ledger)
    assert (project.root / "report.html").is_file()


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["alone", "workers"])
def test_equal_errors_stop_a_run_without_any_option(project, workers):
    project.dataset(tasks=tasks(30, oracle="killed by whom"))
    outcome = project.process("datasets/demo", "-m", "oracle", *workers)
    assert outcome.status == 8
    (line,) = [line for line in outcome.lines if line.startswith("stopped: ")]
    assert line.startswith(f"stopped: {SAME_ERRORS} errors of the machine in a row are killed; ")


def test_failures_seen_before_do_not_hide_that_the_machine_stopped_the_run(project):
    project.dataset(tasks={**tasks(30, oracle="killed by whom"), "a": {"oracle": "wrong-reward low"}})
    assert project.run("datasets/demo", "-m", "oracle").status == 8


def test_stopped_by_failures_is_a_run_with_failures(project):
    project.dataset(tasks=tasks(5, oracle="wrong-reward low"))
    outcome = project.run("datasets/demo", "-m", "oracle", "--otval-stop-if", "fail >= 2")
    assert (outcome.status, len(project.ledger())) == (1, 2)
    assert "stopped: fail >= 2: 2 of 2 answers (wrong-reward x 2); 3 items were not run" in outcome.lines


def test_maxfail_is_pytests_own(project):
    project.dataset(tasks=tasks(5, oracle="killed by whom"))
    outcome = project.run("datasets/demo", "-m", "oracle", "--maxfail=2")
    assert (outcome.status, len(project.ledger())) == (8, 2)
    assert not [line for line in outcome.lines if line.startswith("stopped: ")]


def test_a_later_run_into_the_same_folder_goes_on(project):
    project.dataset(tasks=tasks(3, oracle="killed by whom"))
    project.run("datasets/demo", "-m", "oracle", "--otval-stop-if", "infra >= 1")
    out = project.runs[-1]
    assert (out / STOPPED).is_file()
    project.dataset("fine")
    project.run("datasets/fine", "-m", "oracle", f"--otval-out={out}")
    assert not (out / STOPPED).exists()
    project.runs.append(out)
    assert [id for id in project.ledger() if "/fine/" in id] == ids("a", "b", dataset="fine", stages=("oracle",))


def test_ordinary_tests_are_not_started_either(project):
    project.dataset(tasks={"a": {"oracle": "killed by whom"}})
    project.pytester.makepyfile(test_plain="def test_one(): pass\n")
    outcome = project.run("datasets/demo/tasks/a", "test_plain.py", "--otval-stop-if", "infra >= 1")
    assert outcome.counts == {"passed": 2, "error": 1}
