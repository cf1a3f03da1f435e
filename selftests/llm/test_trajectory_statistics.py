"""What one conversation says about how the agent worked."""

from dataclasses import fields

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_otval.llm.chat import Usage
from pytest_otval.llm.steps import Step
from pytest_otval.llm.trajectory_statistics import MOST_VERBS, Statistics, claims_success, statistics_of
from selftests.llm.conversations import conversation, step


def test_no_steps():
    assert statistics_of([]) == Statistics()


def test_a_conversation_from_reading_to_testing():
    found = statistics_of(
        [
            step("ls -la", "a.py", thought="First I look around.", model_seconds=2.0, command_seconds=0.5),
            step("cat src/a.py", "import x", prompt=300, completion=50),
            step("sed -i 's/x/y/' src/a.py", prompt=400, completion=50),
            step("echo 'def test_y(): pass' > tests/test_y.py", prompt=500, completion=50),
            step("python -m pytest -q", "1 failed", status=1, prompt=600, completion=50),
            step("sed -i 's/y/z/' src/a.py && pytest -q", "2 passed", prompt=700, completion=50),
            step(thought="The bug is fixed.", prompt=800, completion=50),
        ]
    )
    assert (found.steps, found.commands, found.failed, found.nonzero) == (7, 6, 1, 1)
    assert found.kinds == {"search": 1, "read": 1, "edit": 3, "test": 2}
    assert found.verbs == {"sed": 2, "cat": 1, "echo": 1, "ls": 1, "python": 1, "pytest": 1}
    assert (found.first_edit, found.last_edit, found.first_test) == (3, 6, 5)
    assert (found.edited_files, found.read_before_edit, found.tests_written) == (2, 1, 1)
    assert (found.test_runs, found.tests_after_edit, found.last_test_status) == (2, 1, 0)
    assert found.self_verified and found.claimed_success
    assert (found.model_seconds, found.command_seconds) == (2.0, 0.5)
    assert (found.peak_context, found.context_cuts) == (850, 0)
    assert found.tokens == 110 + 350 + 450 + 550 + 650 + 750 + 850


def test_an_edit_after_the_last_test_is_not_verified():
    found = statistics_of(conversation("pytest", "sed -i s/a/b/ a.py"))
    assert (found.tests_after_edit, found.self_verified, found.late_edits) == (0, False, 1)


def test_tests_without_any_edit_verify():
    assert statistics_of(conversation("pytest")).self_verified


def test_calls_that_came_to_nothing():
    steps = [
        step(malformed=True, thought="```"),
        step("rm -rf /tests", malformed=True),
        step("sleep 100", status=None, timed_out=True),
        step("false", status=1),
        step(malformed=True),
    ]
    found = statistics_of(steps)
    assert (found.malformed, found.longest_malformed, found.timeouts, found.nonzero, found.failed) == (3, 2, 1, 1, 5)
    assert found.protected == (), "a call that was not understood was not run"


def test_what_is_not_understood_is_counted():
    found = statistics_of(conversation("if ((", "cat a"))
    assert (found.not_understood, found.kinds) == (1, {"read": 1})


def test_protected_network_and_installs():
    found = statistics_of(
        conversation(
            "cat /tests/test.sh; export PATH=/x", "pip install a", "curl https://b.com https://a.com", "pip list"
        )
    )
    assert found.protected == ("path", "tests")
    assert (found.network_commands, found.installs, found.hosts) == (2, 1, ("a.com", "b.com"))


@pytest.mark.parametrize(
    ("reasoning", "tokens", "said"), [("I think", 0, "present"), ("", 9, "stripped"), ("", 0, "none")]
)
def test_reasoning(reasoning, tokens, said):
    steps = [Step("ls", usage=Usage(1, 10, reasoning=tokens), reasoning=reasoning), Step("ls")]
    assert statistics_of(steps).reasoning == said


def test_a_shorter_conversation_was_cut():
    prompts = (100, 200, 190, 300, 50, 0, 60)
    assert statistics_of([step("ls", prompt=prompt) for prompt in prompts]).context_cuts == 1


@pytest.mark.parametrize(
    ("text", "claimed"),
    [
        ("All tests pass. The task is complete.", True),
        ("I have successfully implemented the parser.", True),
        ("Done.", True),
        ("I could not fix it, though some tests are passing.", False),
        ("I was unable to complete the task successfully.", False),
        ("Let me look at the file.", False),
        ("", False),
    ],
)
def test_claims(text, claimed):
    assert claims_success(text) is claimed
    assert statistics_of([step("ls", thought="Done.")], final=text or "x").claimed_success is claimed


def test_many_programs_are_counted_together():
    found = statistics_of(conversation(*(f"tool{number}" for number in range(MOST_VERBS + 7)), "tool1"))
    assert len(found.verbs) == MOST_VERBS + 1
    assert (found.verbs["other"], found.verbs["tool1"]) == (7, 2)


COMMANDS = ("ls", "cat a.py", "sed -i s/a/b/ a.py", "pytest", "pip install x", "if ((", "", "cat /tests/x", "make")


@settings(max_examples=50, deadline=None)
@given(st.lists(st.builds(step, st.sampled_from(COMMANDS), st.just(""), st.sampled_from((0, 1))), max_size=12))
def test_counts_are_within_the_steps(steps):
    found = statistics_of(steps)
    counts = [getattr(found, one.name) for one in fields(found) if one.name not in ("tokens", "peak_context")]
    assert all(0 <= count <= len(steps) for count in counts if type(count) is int)
    assert found.read_before_edit <= found.edited_files
    assert found.tests_after_edit <= found.test_runs
    assert (found.first_edit is None) == (found.last_edit is None) == ("edit" not in found.kinds)
    assert found.self_verified == (found.tests_after_edit > 0)
