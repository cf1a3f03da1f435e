"""Agents that go in circles."""

from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.llm.loops import LONGEST_BLOCK, TIMES, Loops, loops_of
from selftests.llm.conversations import conversation, step


def loops(letters):
    return loops_of(conversation(*letters))


def test_no_steps_and_no_repeats():
    assert loops("") == Loops(0, 0, 0, 0)
    assert loops("abcdef") == Loops(0, 0, 1, 0)


def test_the_same_command_again_and_again():
    assert loops("abbbbc") == Loops(3, 1, 4, 4)


def test_twice_is_no_loop():
    assert loops("abba") == Loops(2, 0, 2, 0)


def test_a_block_of_several_steps():
    assert loops("xabcabcabcy") == Loops(6, 4, 3, 9)


def test_half_a_block_at_the_end_is_in_the_loop():
    assert loops("abababa").steps_in_loops == 7


def test_two_loops():
    assert loops("aaabcbcbcbc") == Loops(8, 4, 4, 11)


def test_steps_that_were_there_before_at_a_distance():
    assert loops("abcxabcy") == Loops(3, 1, 1, 0)


def test_another_output_is_another_step():
    steps = [step("make", f"error in line {number}") for number in range(5)]
    assert loops_of(steps).longest_repeat == 1


def test_outputs_that_differ_in_time_alone_are_the_same():
    steps = [step("pytest", f"1 failed in 0.0{n}s at 12:00:0{n} <object at 0x7f{n}>") for n in range(1, 5)]
    assert loops_of(steps).longest_repeat == 4


def test_steps_without_a_command_are_what_the_model_said():
    assert loops_of([step(thought="I am stuck.")] * 4).longest_repeat == 4
    assert loops_of([step(thought="One."), step(thought="Two."), step(thought="Three.")]).longest_repeat == 1


def brute_force(letters):
    """Mark all steps of blocks that come ``TIMES`` times, tried at every place with every length."""
    inside, longest = set(), 1 if letters else 0
    for start in range(len(letters)):
        for period in range(1, min(LONGEST_BLOCK, len(letters) // 2) + 1):
            times = 1
            block = letters[start : start + period]
            while letters[start + times * period : start + (times + 1) * period] == block:
                times += 1
            longest = max(longest, times if len(block) == period else 1)
            if times >= TIMES:
                inside.update(range(start, start + times * period))
    return longest, len(inside)


@given(st.text("abc", max_size=30))
def test_against_all_blocks_at_all_places(letters):
    found = loops(letters)
    assert (found.longest_repeat, found.steps_in_loops) == brute_force(letters)
    assert found.repeated_steps == len(letters) - len(set(letters))


def test_a_long_conversation_is_looked_through():
    assert loops_of(conversation(*("abcdefghij" * 500))).steps_in_loops == 5000
