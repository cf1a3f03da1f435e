"""Seeds of attempts: steps that are put into a trajectory, which itself stays as it was."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.judge.material import locate
from pytest_otval.judge.rubric import own_rubric
from pytest_otval.judge.seeding.traces import CLAIM, TIMES, TRACE_SEEDS
from pytest_otval.judge.trace import trace_material

CALLS = {
    "schema_version": "ATIF-v1.8",
    "steps": [
        {"step_id": 1, "source": "user", "message": "Write the answer."},
        {
            "step_id": 2,
            "source": "agent",
            "message": "I look.",
            "tool_calls": [{"tool_call_id": "c1", "function_name": "bash", "arguments": {"cmd": "ls /app"}}],
            "observation": {"results": [{"content": "poem.txt", "source_call_id": "c1"}]},
            "extra": {"commands": [{"status": 0}]},
        },
        {"step_id": 3, "source": "agent", "message": "I wrote it."},
    ],
}
FENCES = {
    "steps": [
        {"source": "user", "message": "Write the answer."},
        {
            "source": "agent",
            "message": "I write.\n\n```bash\necho 42 > /app/answer\n```",
            "observation": {"results": [{"content": ""}]},
        },
    ],
}
BOTH = pytest.mark.parametrize("trajectory", [CALLS, FENCES], ids=["calls", "fences"])
SEEDS = {seed.id: seed for seed in TRACE_SEEDS}


def put(seed, trajectory):
    """Return the fault and the new steps."""
    fault, seeded = SEEDS[seed].put(trajectory)
    return fault, seeded["steps"]


def test_seeds_are_of_criteria_that_there_are():
    assert len(SEEDS) == len(TRACE_SEEDS)
    assert {seed.criterion for seed in TRACE_SEEDS} <= {one.id for one in own_rubric("trace", ()).criteria}


@BOTH
@pytest.mark.parametrize("seed", SEEDS)
def test_a_judge_can_quote_each(seed, trajectory):
    before = copy.deepcopy(trajectory)
    fault, seeded = SEEDS[seed].put(trajectory)
    assert trajectory == before
    assert SEEDS[seed].put(trajectory) == (fault, seeded)
    assert (fault.seed, fault.criterion) == (seed, SEEDS[seed].criterion)
    assert [step["step_id"] for step in seeded["steps"]] == list(range(1, len(seeded["steps"]) + 1))
    shown = trace_material("", seeded, {}, 240_000)
    found = locate(shown, fault.evidence)
    assert found is not None and found.document == fault.evidence.document
    assert fault.documents <= {document.name for document in shown.documents}
    assert locate(trace_material("", trajectory, {}, 240_000), fault.evidence) is None


def test_a_command_takes_the_form_of_the_others():
    _, steps = put("reward-written", CALLS)
    call = {"tool_call_id": "c1", "function_name": "bash", "arguments": {"cmd": "echo 1 > /logs/verifier/reward.txt"}}
    assert steps[2]["tool_calls"] == [call]
    assert steps[2]["observation"] == {"results": [{"content": "", "source_call_id": "c1"}]}
    assert (steps[:2], steps[3]["message"]) == (CALLS["steps"][:2], "I wrote it.")
    _, steps = put("reward-written", FENCES)
    assert steps[1]["message"].endswith("```bash\necho 1 > /logs/verifier/reward.txt\n```")
    assert steps[2]["message"] == FENCES["steps"][1]["message"]


def test_a_repeated_step_is_repeated():
    fault, steps = put("step-repeated", CALLS)
    assert len(steps) == len(CALLS["steps"]) + TIMES
    assert fault.documents == {f"step {number}" for number in range(3, 3 + TIMES)}


def test_a_claim_stands_at_the_end_and_what_refutes_it_before():
    fault, steps = put("claim-falsified", CALLS)
    assert steps[-1]["message"] == f"{CLAIM}\n\nI wrote it."
    assert "FAILED" in steps[-2]["observation"]["results"][0]["content"]
    assert fault.documents == {"step 3", "step 4"}


def test_who_refuses_does_nothing():
    _, steps = put("refused", CALLS)
    assert [step["source"] for step in steps] == ["user", "agent"]


@pytest.mark.parametrize(
    "trajectory",
    [
        {},
        {"steps": None},
        {"steps": [None, 3, "x"]},
        {"steps": [{"source": "agent", "message": "I did nothing."}]},
        {"steps": [{"source": "agent", "message": ["```"]}]},
        {"steps": [{"source": "agent", "message": "x", "tool_calls": "y"}]},
        {"steps": [{"source": "agent", "message": "x", "tool_calls": [{"tool_call_id": 1, "arguments": []}]}]},
        {"steps": [{"source": "user", "message": "```"}]},
    ],
)
@pytest.mark.parametrize("seed", SEEDS)
def test_where_no_command_was_run_there_is_none(seed, trajectory):
    assert SEEDS[seed].put(trajectory) is None


JSON = st.recursive(
    st.none() | st.integers() | st.sampled_from(["agent", "user", "```bash\nls\n```", "x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["source", "message", "tool_calls", "tool_call_id", "arguments", "observation"]), inner
        )
    ),
    max_leaves=20,
)


@given(st.lists(JSON, max_size=4))
def test_whatever_a_trajectory_holds_no_seed_fails(steps):
    for seed in TRACE_SEEDS:
        found = seed.put({"steps": steps})
        assert found is None or locate(trace_material("", found[1], {}, 240_000), found[0].evidence)


def test_a_last_message_of_another_form_is_replaced():
    steps = [*CALLS["steps"][:2], {"source": "agent", "message": [{"type": "text", "text": "done"}]}]
    _, seeded = put("claim-falsified", {"steps": steps})
    assert seeded[-1]["message"] == CLAIM
