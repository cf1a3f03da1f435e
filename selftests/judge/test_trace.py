"""What is shown of an attempt: its conversation, whatever it holds, and nothing of its score."""

from dataclasses import asdict

from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.judge.prompts import review_messages
from pytest_otval.judge.trace import BLIND, MOST_PARTS, trace_material
from pytest_otval.llm.trajectory_statistics import Statistics
from selftests.judge.snapshots import FACTS, TRACE, TRAJECTORY
from selftests.judge.test_files import size_of

PLENTY = 200_000


def said(message, **more):
    return {"source": "agent", "message": message, **more}


def ran(command, output="", status=0):
    return said(
        "on",
        tool_calls=[{"function_name": "shell", "arguments": {"command": command}}],
        observation={"results": [{"content": output}]},
        extra={"commands": [{"status": status}]},
    )


def material_of(steps, facts=None, characters=PLENTY):
    return trace_material("Do it.", {"steps": steps}, facts or {}, characters)


def shown(material):
    return {one.name: one.text for one in material.documents}


def test_a_step_has_names_at_the_margin_and_words_behind_it():
    found = shown(
        material_of([said("output:\n\nnot mine\u2028call shell:", reasoning_content="\toutput:"), ran("ls\n")])
    )
    assert found["step 1"] == "agent:\n  output:\n  \n  not mine\\u2028call shell:\nreasoning:\n  \toutput:"
    assert found["step 2"] == "agent:\n  on\ncall shell:\n  ls\noutput, status 0:\n  "


def test_of_facts_only_the_blind_ones_are_told():
    blind = {"truncated": True, "flags": ["touched-reward", "solved-without-change", "paid", 3], "retries": 2}
    statistics = {**asdict(Statistics(steps=3)), "reward": 1, "score": 0.5}
    told = material_of(
        [], {**blind, "reward": 1, "score": 1, "usd": 3, "verdict": "pass", "statistics": statistics}
    ).facts
    assert told["flags"] == ["touched-reward"]
    assert (told["truncated"], told["steps"]) == (True, 3)
    assert set(told) <= {*BLIND, "flags"}
    assert not {"reward", "score", "usd", "verdict", "solved"} & set(told)


def test_the_facts_of_a_ledger_line_are_told():
    told = material_of([], {**FACTS, "statistics": asdict(Statistics(steps=2, protected=("tests",)))}).facts
    assert {"finish", "changed_files", "steps", "protected", "self_verified"} <= set(told)


def test_the_longest_facts_go_where_they_are_too_long():
    told = material_of(
        [], {"finish": "submitted", "statistics": {"verbs": {str(n): n for n in range(500)}}}, 2000
    ).facts
    assert told == {"finish": "submitted"}


def test_nothing_but_the_steps_is_told_of_a_trajectory():
    material = trace_material("x", {**TRAJECTORY, "extra": {"reward": "paid"}, "notes": "paid"}, {}, PLENTY)
    assert "paid" not in str(material)
    steps = [{**ran("ls"), "metrics": {"cost_usd": 1}, "timestamp": "paid", "extra": {"reward": "paid"}}]
    assert "paid" not in str(material_of(steps))


def test_parts_of_messages_are_their_texts():
    step = said([{"type": "text", "text": "one"}, {"type": "image", "source": {}}, {"text": "two"}, {"text": ["x"]}, 3])
    assert shown(material_of([step]))["step 1"] == "agent:\n  one\n  two"


def test_what_is_no_trajectory_has_no_steps():
    for steps in (None, 3, {}, "steps"):
        assert list(shown(material_of(steps))) == ["instruction"]
    odd = [3, {}, said(3, tool_calls=3), said("x", tool_calls=[3, {}, {"function_name": "a\nb"}], observation=[])]
    odd += [
        said(
            "x", observation={"results": [3, {"content": {}}]}, extra={"commands": [3, {"status": "x"}, {}]}, source=[]
        )
    ]
    found = shown(material_of(odd))
    assert found["step 1"] == found["step 2"] == "agent:\n  "
    assert "call a\\nb:\n  null" in found["step 4"]


def test_of_a_step_of_very_many_calls_the_last_ones_are_one_part():
    calls = [{"function_name": "shell", "arguments": {"command": f"echo {number}"}} for number in range(1000)]
    material = material_of([said("many", tool_calls=calls)], characters=8000)
    text = shown(material)["step 1"]
    assert [f"call shell:\n  echo {number}\n" in text for number in (0, MOST_PARTS - 3, 300)] == [True, True, False]
    assert text.endswith("echo 999")
    assert material.left_out == ("step 1: not shown as a whole",)


def test_of_a_long_trace_ends_come_first_then_what_touches_tests_then_edits_and_failures():
    steps = [ran("ls", "x" * 1000) for _ in range(200)]
    steps[99] = ran("cat /tests/test.sh", "x" * 1000)
    steps[110] = ran("echo 1 > answer", "x" * 1000)
    call = {"function_name": "str_replace", "arguments": {"path": "a.py"}}
    steps[115] = said("x" * 1000, tool_calls=[call])
    steps[120] = ran("make", "x" * 1000, status=2)
    steps[130] = said("```bash\necho 1 > /logs/verifier/reward.txt\n```\n" + "x" * 1000)
    material = material_of(steps, characters=25_000)
    whole = [name for name, text in shown(material).items() if "not shown" not in text]
    assert whole == [
        "instruction",
        *(f"step {number}" for number in (1, 2, 3, 100, 111, 116, 121, 131, 196, 197, 198, 199, 200)),
    ]
    names = [int(name.split()[1]) for name in shown(material) if name != "instruction"]
    assert names == sorted(names)
    assert "steps 196-200" not in str(material.left_out)
    assert "steps 132-195: there was no place" in material.left_out
    assert size_of(material) <= 25_000


def test_a_command_that_is_long_before_it_touches_the_tests_comes_before_others():
    steps = [ran("ls", "x" * 1000) for _ in range(100)]
    steps[50] = ran("x=1; " * 10_000 + "rm /tests/test.sh", "x" * 1000)
    assert "rm /tests/test.sh" in shown(material_of(steps, characters=20_000))["step 51"]


def test_a_flood_of_words_does_not_hide_a_command():
    flood = "all is well\n" * 100_000
    step = {**ran("cp /solution/answer .", flood), "message": flood, "reasoning_content": flood}
    steps = [said("x"), *([ran("ls")] * 10), step, *([ran("ls")] * 10)]
    assert "\ncall shell:\n  cp /solution/answer .\n" in shown(material_of(steps, characters=10_000))["step 12"]


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(st.characters(), max_size=2000),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner, max_size=5),
    max_leaves=10,
)
FIELDS = ("source", "message", "reasoning_content", "tool_calls", "observation", "extra")
CALLS = st.fixed_dictionaries(
    {}, optional={"function_name": JSON, "arguments": st.fixed_dictionaries({"command": JSON}) | JSON}
)
STEPS = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(FIELDS, JSON),
        "tool_calls": st.lists(CALLS | JSON, max_size=30) | JSON,
        "observation": st.fixed_dictionaries({"results": st.lists(st.fixed_dictionaries({"content": JSON}))}) | JSON,
    },
)
SECRET = "5up3r53cr3t"
LEDGER = st.dictionaries(st.sampled_from([*BLIND, "flags", "statistics"]) | st.text(max_size=5), JSON, max_size=5).map(
    lambda facts: {**facts, "reward": SECRET, "score": SECRET, "headline": SECRET, "evidence": SECRET}
)


@given(st.text(st.characters()), st.lists(STEPS | JSON, max_size=20), LEDGER, st.integers(1000, 30_000))
def test_no_attempt_makes_it_fail_exceeds_the_budget_or_tells_the_score(instruction, steps, facts, characters):
    trajectory = {"steps": steps, "extra": {"reward": SECRET}, "agent": {"name": SECRET}, "session_id": SECRET}
    material = trace_material(instruction, trajectory, facts, characters)
    empty = type(material)(())
    prompt, without = (review_messages(TRACE, one)[1]["content"] for one in (material, empty))
    assert len(prompt) - len(without) <= characters
    assert SECRET not in prompt
