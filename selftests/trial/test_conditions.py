"""What is brought into a verifier's container, and what its programs are told."""

import os
import stat
import time

import pytest

from pytest_otval.core import Conclusion
from pytest_otval.sandbox.base import Command
from pytest_otval.settings import VerdictSettings
from pytest_otval.stages.question import Question
from pytest_otval.task.dataset import DatasetSettings
from pytest_otval.trial import conditions
from pytest_otval.trial.conditions import ORDINARY, PLACE, Conditions
from selftests.fakes import TOML, Answer, ask, make_task

DAY = 86400


@pytest.fixture
def library(tmp_path, monkeypatch):
    path = tmp_path / "some-lib.so"
    path.write_bytes(b"ELF")
    path.chmod(0o600)
    monkeypatch.setattr(conditions, "clock_library", lambda: path)


@pytest.mark.parametrize(
    ("settings", "attempt", "expected"),
    [
        ({}, 3, ORDINARY),
        ({"shuffle_tests": True}, 0, Conditions(0)),
        ({"shuffle_tests": True}, 3, Conditions(3)),
        ({"clock_shift": "400d"}, 3, Conditions(None, 400 * DAY)),
        ({"clock_shift": "-12h", "shuffle_tests": True}, 1, Conditions(1, -43200)),
        ({"clock_shift": "5m"}, 0, Conditions(None, 300)),
        ({"clock_shift": "-7s"}, 0, Conditions(None, -7)),
        ({"clock_shift": "0d"}, 0, ORDINARY),
    ],
)
def test_settings_and_attempt_decide(settings, attempt, expected):
    found = Conditions.of(VerdictSettings(**settings), attempt)
    assert (found, bool(found)) == (expected, expected != ORDINARY)


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_only_what_is_asked_for_is_brought(tmp_path, library):
    order = Conditions(3).bring(tmp_path / "order")
    assert files(order) == [
        "otval_test_order-1.dist-info/METADATA",
        "otval_test_order-1.dist-info/entry_points.txt",
        "otval_test_order.py",
    ]
    assert files(Conditions(None, DAY).bring(tmp_path / "clock")) == ["libfaketime.so.1"]
    assert len(files(Conditions(0, DAY).bring(tmp_path / "both"))) == 4


def test_any_user_of_the_container_can_read_it(tmp_path, library):
    old = os.umask(0o077)
    try:
        folder = Conditions(3, DAY).bring(tmp_path / "both")
    finally:
        os.umask(old)
    for path in (folder, *folder.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) & 0o555 == 0o555, path
    assert stat.S_IMODE((folder / "told").stat().st_mode) == 0o777


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({}, {"PYTHONPATH": PLACE, "OTVAL_TEST_ORDER": "3"}),
        (
            {"PYTHONPATH": "/app:/lib", "A": "b"},
            {"PYTHONPATH": f"/app:/lib:{PLACE}", "A": "b", "OTVAL_TEST_ORDER": "3"},
        ),
        ({"PYTHONPATH": ""}, {"PYTHONPATH": PLACE, "OTVAL_TEST_ORDER": "3"}),
    ],
)
def test_variables_of_an_order(env, expected):
    assert Conditions(3).variables(env) == expected
    assert ORDINARY.variables(env) == env


def test_variables_of_a_clock():
    found = Conditions(None, -5).variables({"LD_PRELOAD": "/theirs.so"})
    assert found["LD_PRELOAD"] == f"{PLACE}/libfaketime.so.1:/theirs.so"
    assert found["FAKETIME"] == "-5"
    assert Conditions(None, DAY).variables({})["FAKETIME"] == "+86400"
    assert "PYTHONPATH" not in found


# --- the clock --------------------------------------------------------------------------------------------------------


class Container:
    """Answers the question for the time."""

    def __init__(self, words):
        self.words = words
        self.asked = []

    def run(self, command):
        self.asked.append(command)
        command.log.write_text(self.words)
        return _Result(command.log)


class _Result:
    ended, ok, seconds = "exit", True, 0.0

    def __init__(self, log):
        self.log = log


def clock(tmp_path, words, shift=400 * DAY):
    container = Container(words.format(now=int(time.time()), shifted=int(time.time()) + shift))
    test = Command(["test.sh"], tmp_path / "x", {"A": "b"}, "grader", "/app", 9.0)
    Conditions(None, shift).require_clock(container, test, tmp_path / "clock.txt")
    return container.asked


def test_the_clock_is_asked_as_the_tests_will_see_it(tmp_path):
    (command,) = clock(tmp_path, "clock date {shifted}\nclock python3 {shifted}\n")
    assert (command.env, command.user, command.workdir) == ({"A": "b"}, "grader", "/app")


def test_an_unshifted_clock_is_not_asked(tmp_path):
    assert clock(tmp_path, "", shift=0) == []


@pytest.mark.parametrize(
    ("words", "headline"),
    [
        ("clock date {now}\n", "date of the image tells the real time under a shifted clock"),
        ("noise\nclock date {shifted}\nclock python3 {now}\n", "python3 of the image tells the real time"),
        ("clock date \nError relocating\n", "date of the image tells no time"),
        ("clock date yes\n", "date of the image tells no time"),
        ("", "the image has no date, python3 or perl"),
    ],
)
def test_a_program_that_does_not_follow(tmp_path, words, headline):
    with pytest.raises(Conclusion) as error:
        clock(tmp_path, words)
    assert error.value.reason == "clock-not-shifted"
    assert error.value.headline.startswith(headline)


# --- in a trial -------------------------------------------------------------------------------------------------------


def bound(container, target):
    return any(bind.target == target for bind in container.spec.binds)


def tells(count):
    """test.sh runs pytest, which leaves word."""

    def script(container, command):
        if command.argv[-1] == "/tests/test.sh":
            (container.bound("/logs/verifier") / "reward.txt").write_text("1")
            if count is not None:
                (container.bound(PLACE) / "told" / str(count)).touch()
        return None

    return script


def asked(machine, tmp_path, attempt=4, toml=TOML):
    question = Question(make_task(tmp_path, toml=toml), DatasetSettings(), tmp_path / "evidence", attempt)
    return ask("oracle", machine, question)[0]


def test_only_the_verifier_gets_it(fake_machine, tmp_path):
    machine = fake_machine(tells(12), shuffle_tests=True)
    asked(machine, tmp_path)
    assert [bound(one, PLACE) for one in machine.sandbox.containers] == [False, True]
    solve, test = (command for command in machine.sandbox.commands if command.argv[-1].endswith(".sh"))
    assert "PYTHONPATH" not in solve.env
    assert test.env["OTVAL_TEST_ORDER"] == "4"


@pytest.mark.parametrize(
    ("count", "headline"),
    [
        (12, "tests in the order of seed 4"),
        (None, "no tests were put in another order: no pytest that takes plugins ran"),
    ],
)
def test_what_an_order_came_to_is_told(fake_machine, tmp_path, count, headline):
    result = asked(fake_machine(tells(count), shuffle_tests=True), tmp_path)
    (trial,) = result.facts["trials"]
    assert (result.reason, result.headline, trial["headline"]) == ("expected", headline, headline)
    assert trial["steps"][0]["test_order"] == {"seed": 4, "tests": count or 0}


def test_without_the_option_nothing_is_told(fake_machine, tmp_path):
    machine = fake_machine(lambda container, command: None)
    result = asked(machine, tmp_path)
    assert "test_order" not in result.facts["trials"][0]["steps"][0]
    assert not any(bound(container, PLACE) for container in machine.sandbox.containers)


def test_an_order_is_told_of_a_verifier_that_never_ends(fake_machine, tmp_path):
    def script(container, command):
        if command.argv[-1] == "/tests/test.sh":
            (container.bound(PLACE) / "told" / "3").touch()
            return Answer("timeout", None)
        return None

    result = asked(fake_machine(script, shuffle_tests=True), tmp_path)
    assert result.reason == "verifier-timeout"
    assert result.headline.endswith("; tests in the order of seed 4")


@pytest.mark.parametrize("word", ["-1", "9" * 10, "x", "\N{SUPERSCRIPT TWO}", "\N{ARABIC-INDIC DIGIT TWO}"])
def test_nonsense_in_its_place_is_no_count(tmp_path, word):
    folder = Conditions(1).bring(tmp_path / "brought")
    (folder / "told" / word).touch()
    assert Conditions(1).test_order(folder) == {"seed": 1, "tests": 0}


def test_a_file_in_place_of_the_folder_is_no_count(tmp_path):
    folder = Conditions(1).bring(tmp_path / "brought")
    (folder / "told").rmdir()
    (folder / "told").symlink_to("/nowhere")
    assert Conditions(1).test_order(folder) == {"seed": 1, "tests": 0}


def test_in_one_container_it_comes_between_the_phases(fake_machine, tmp_path):
    """A container of both phases has an empty folder, which a program of ours fills when the agent is done."""
    machine = fake_machine(tells(None), shuffle_tests=True)
    result = asked(machine, tmp_path, toml=TOML + '[metadata.otval]\nprocess_scope = "trial"\n')
    assert result.reason == "expected"
    (container,) = machine.sandbox.containers
    words = [" ".join(command.argv) for command in container.commands]
    solve = next(number for number, line in enumerate(words) if "solve.sh" in line)
    cleared = next(number for number, line in enumerate(words) if "-delete" in line and PLACE in line)
    filled = next(number for number, line in enumerate(words) if line.endswith(f"-C {PLACE}"))
    test = next(number for number, line in enumerate(words) if "test.sh" in line)
    assert solve < cleared < filled < test


def test_a_clock_that_is_not_shifted_is_no_verdict(fake_machine, tmp_path, library):
    result = asked(fake_machine(tells(None), clock_shift="400d"), tmp_path)
    assert (result.reason, result.verdict) == ("clock-not-shifted", "n/a")


def test_a_missing_library_is_told_once(fake_machine, tmp_path, monkeypatch):
    def missing():
        raise Conclusion("missing-tool", "there is no libfaketime")

    monkeypatch.setattr(conditions, "clock_library", missing)
    result = asked(fake_machine(tells(None), clock_shift="400d"), tmp_path)
    assert (result.reason, result.verdict) == ("missing-tool", "error")
