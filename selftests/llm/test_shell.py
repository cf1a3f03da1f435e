"""The shell of an agent over a container in which nothing runs."""

from types import SimpleNamespace

import pytest

from pytest_otval.core import Conclusion
from pytest_otval.llm import shell as shells
from pytest_otval.llm.shell import MOST_BYTES, OutOfSpaceError, Shell
from selftests.fakes import Answer
from selftests.llm.scripted import Place


@pytest.fixture
def shell(tmp_path):
    def make(*answers, env=None):
        left = list(answers)
        place = Place(tmp_path, lambda line: left.pop(0) if left else None)
        return Shell(place.place, env), place

    return make


def test_what_a_command_is_run_with(shell):
    one, place = shell(Answer(output=b"hello\n"), env={"PAGER": "cat"})
    ran = one.run("echo $A", 30)
    assert (ran.output, ran.status, ran.note, ran.timed_out) == ("hello\n", 0, "", False)
    command = place.commands[-1]
    assert command.argv[-4:] == ["30", "/bin/bash", "-c", "echo $A"]
    assert (command.env, command.user, command.workdir) == ({"A": "1", "PAGER": "cat"}, "agent", "/work")
    assert command.seconds == 40


def test_the_shell_is_looked_for_once(shell):
    one, place = shell()
    one.run("a", 1)
    one.run("b", 1)
    assert (len(place.commands), place.lines) == (3, ["a", "b"])


@pytest.mark.parametrize("text", ["echo \0", "\0"])
def test_nul(shell, text):
    one, place = shell()
    ran = one.run(text, 1)
    assert (ran.status, place.commands) == (None, [])
    assert "NUL" in ran.note


def test_half_characters_become_what_a_command_line_can_hold(shell):
    one, place = shell()
    one.run("echo \ud800 \udc80 é", 1)
    assert place.lines == ["echo ? ? é"]


def test_output_that_is_no_text(shell):
    assert shell(Answer(output=b"\xff\x1b[2J\0"))[0].run("x", 1).output == "\ufffd\x1b[2J\0"


def test_long_output_keeps_both_ends(shell):
    ran = shell(Answer(output=b"a" * MOST_BYTES + b"b" * MOST_BYTES))[0].run("x", 1)
    assert ran.output.startswith("aaa")
    assert ran.output.endswith("bbb")
    assert "middle of the output is left out" in ran.output
    assert len(ran.output) < MOST_BYTES + 100


def test_a_command_at_its_limit(shell, monkeypatch):
    one, place = shell(Answer(status=137, output=b"half"), Answer(status=137))
    clock = iter((0.0, 2.5, 3.0, 3.1))
    # Of this module alone: other threads have clocks, too.
    monkeypatch.setattr(shells, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    ran = one.run("sleep 9", 2)
    assert (ran.output, ran.status, ran.timed_out, place.revived) == ("half", None, True, 0)
    assert "killed after 2 s" in ran.note
    ran = one.run("kill -9 $$", 2)
    assert (ran.status, ran.timed_out) == (137, False)


def test_memory_is_told_and_counted(shell):
    one, place = shell(Answer("memory", None, b"so far"), Answer("memory", None), Answer(left_alive=2))
    ran = one.run("x", 1)
    assert (ran.output, ran.status, ran.memory_killed, ran.timed_out) == ("so far", None, True, False)
    assert "memory was used up" in ran.note
    one.run("x", 1)
    one.run("x", 1)
    assert (one.memory_kills, place.revived, one.left_alive) == (2, 2, 2)


def test_what_cannot_be_stopped(shell):
    one, place = shell(Answer("timeout", None))
    ran = one.run("x", 1)
    assert (ran.timed_out, place.revived) == (True, 1)
    assert "could not be stopped" in ran.note


def test_storage_ends_it_with_a_living_machine(shell):
    one, place = shell(Answer("storage", None))
    with pytest.raises(OutOfSpaceError):
        one.run("x", 1)
    assert place.revived == 1


@pytest.mark.parametrize(("ended", "reason"), [("killed", "killed"), ("refused", "bad-task")])
def test_what_is_no_fault_of_an_agent(shell, ended, reason):
    one, place = shell(Answer(ended, None, b"there is no user 'agent' in the image\n"))
    with pytest.raises(Conclusion) as caught:
        one.run("x", 1)
    assert (caught.value.reason, place.revived) == (reason, 0)


def test_a_shell_that_was_killed(shell):
    """It may have been the container's own, so that no other command would run."""
    one, place = shell(Answer(status=None))
    ran = one.run("kill -9 -1", 1)
    assert (ran.status, ran.timed_out, place.revived) == (None, False, 1)
    assert "killed the shell" in ran.note


def test_an_image_without_any_shell(tmp_path):
    place = Place(tmp_path)
    made = place.place.run
    object.__setattr__(place.place, "run", lambda command: _nothing(made(command)))
    Shell(place.place).run("x", 1)
    assert place.commands[-1].argv[-3] == "/.otval/sh"


def _nothing(result):
    result.log.write_bytes(b"")
    return result
