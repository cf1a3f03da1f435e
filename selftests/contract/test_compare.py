"""What differs between contracts, and what of a run that touches."""

from datetime import date

import msgspec
import pytest

from pytest_otval.contract.again import estimate, to_ask_again
from pytest_otval.contract.compare import differences, expired
from pytest_otval.contract.files import changed, keep_files, known_files
from pytest_otval.contract.model import Contract, DatasetPin, ImagePin, KnownBadPin, RuntimePin, TaskPin
from pytest_otval.contract.outcomes import keeping_outcomes, with_outcomes
from pytest_otval.history import learn
from selftests.report.ledgers import line, make_run

A, B, C = ("a" * 64, "b" * 64, "c" * 64)
STAGES = (("static", "oracle", "noop"),)
replace = msgspec.structs.replace


def contract(tasks=None, images=((A, "debian@1"),), pin=None, **values):
    tasks = tasks or {"one": TaskPin(A, (0,)), "two": TaskPin(B, (0,))}
    dataset = DatasetPin(settings=C, stages=STAGES, tasks=tasks, own=("static",), **(pin or {}))
    usual = {"settings": {}, "uids": "mapped", "versions": {"python": "3.11"}}
    pins = tuple(ImagePin(*image) for image in images)
    return Contract(otval_contract=1, digest="", datasets={"demo": dataset}, images=pins, **{**usual, **values})


def found(before, after):
    return [str(one) for one in differences(before, after)]


def test_equal_ones_do_not_differ():
    assert found(contract(), contract()) == []


@pytest.mark.parametrize(
    ("after", "words"),
    [
        ({"tasks": {"one": TaskPin(C, (0,)), "two": TaskPin(B, (0,))}}, "tasks: demo/one: changed"),
        ({"tasks": {"two": TaskPin(B, (0,))}}, "tasks: demo/one: is gone"),
        ({"images": ((B, "debian@2"),)}, "images: demo/one: its base is debian@2 and was debian@1"),
        ({"images": ((B, "debian@1"),)}, "images: demo/one: its image is made in another way"),
        ({"settings": {"rules": "strict"}}, "settings: rules: is strict and was not set"),
        ({"uids": "own"}, "settings: uids: no range of uids is mapped, and a range of uids is mapped in the contract"),
        ({"versions": {"python": "3.12"}}, "versions: python: is 3.12 and was 3.11"),
        ({"checks": "2"}, "checks: version of the static checks: is 2 and was none"),
        ({"attacks": "2"}, "attacks: version of the battery: is 2 and was none"),
        ({"rubrics": "trace 2"}, "rubrics: what is judged by: is trace 2 and was none"),
        ({"runtimes": (RuntimePin("v-123456789abc", A, "/v"),)}, "runtimes: v-123456789abc: is new"),
        ({"pin": {"inapplicable": {"one": {"oracle": "compose"}}}}, "expected: demo/one: other questions apply to it"),
        (
            {"pin": {"known_bad": {"one": KnownBadPin("r", "me", "2030-01-01", ("oracle",))}}},
            "expected: demo/one: is known bad in another way",
        ),
    ],
)
def test_each_class_is_named(after, words):
    assert found(contract(), contract(**after))[0] == words


def test_the_number_of_an_image_in_the_table_does_not_matter():
    before = contract({"one": TaskPin(A, (1, 0))}, ((A, "x"), (B, "y")))
    after = contract({"one": TaskPin(A, (0, 1))}, ((B, "y"), (A, "x")))
    assert found(before, after) == []


def test_what_a_run_told_beyond_the_files_is_no_difference():
    told = contract(pin={"inapplicable": {"one": {"oracle": "no-gpu", "noop": "no-gpu"}}})
    assert found(told, contract()) == []


def test_expectations_expire_after_their_day():
    bad = contract(pin={"known_bad": {"one": KnownBadPin("typo", "me", "2030-01-01", ("oracle",))}})
    assert not list(expired(bad, date(2030, 1, 1)))
    (one,) = expired(bad, date(2030, 1, 2))
    assert "applied until 2030-01-01 (me: typo)" in str(one)


def again(**after):
    other = contract(**after)
    return [
        item.id.split("/")[-2] + item.id[item.id.index("::") :]
        for item in to_ask_again(other, differences(contract(), other))
    ]


def test_what_changed_is_asked_again():
    changed_one = {"one": TaskPin(C, (0,)), "two": TaskPin(B, (0,))}
    assert again() == []
    assert again(tasks=changed_one) == ["one::static", "one::oracle", "one::noop"]
    assert again(images=((B, "debian@2"),)) == ["one::oracle", "one::noop", "two::oracle", "two::noop"]
    assert again(checks="2") == ["demo::static", "one::static", "two::static"]
    assert len(again(settings={"rules": "strict"})) == contract().count
    assert again(versions={}) == []


def test_the_estimate_takes_the_mean_where_nothing_is_recorded(tmp_path):
    ids = "datasets/demo/tasks/{}/task.toml::{}"
    common = {"verdict": "pass", "image_key": ""}
    learn(
        tmp_path,
        [
            {"id": ids.format("one", "oracle"), "stage": "oracle", "seconds": {"total": 3600.0}, **common},
            {"id": ids.format("one", "static"), "stage": "static", "seconds": {"total": 0.0}, **common},
        ],
    )
    items = [item for item in contract().items() if item.stage == "oracle"]
    told = estimate(items, tmp_path)
    assert (told.items, told.core_seconds, told.guessed) == (2, 7200.0, 1)
    assert str(told) == "2 items have to run again: about 2.0 h of one core, 1 of them guessed"
    assert told.node_hours(48) == pytest.approx(2 / 48)
    assert str(estimate([], tmp_path)) == "nothing has to run again"
    assert "is not known" in str(estimate(items, tmp_path / "none"))


def test_files_are_named_as_they_changed(tmp_path):
    before = {"a": "file  1", "b": "file  1", "x": "file  1", "same": "link  y"}
    after = {"a": "file  2", "b": "file x 1", "new\x1b": "file  1", "same": "link  y"}
    assert changed(before, after) == "a changed, b may be executed now, new\\x1b is new, x is gone"
    assert changed(None, after) == changed(before, None) == ""
    many = {f"f{number}": "file  1" for number in range(9)}
    assert changed({}, many).endswith("f3 is new and 5 more")
    keep_files(tmp_path, A, {("demo", "one"): before, ("demo", "two"): after})
    assert known_files(tmp_path, A, [("demo", "two")]) == {("demo", "two"): after}
    assert known_files(tmp_path, B, [("demo", "two")]) == {}
    (tmp_path / f"{A[:16]}.files.gz").write_bytes(b"no gzip")
    assert known_files(tmp_path, A, [("demo", "two")]) == {}


def test_a_run_tells_what_does_not_apply(tmp_path):
    make_run(
        tmp_path,
        line("one", "oracle", "no-gpu", time="2"),
        line("one", "oracle", "expected", time="1"),
        line("one", "noop", "wrong-reward"),
        line("unknown", "oracle", "no-gpu"),
    )
    told = with_outcomes(contract(), tmp_path)
    assert told.datasets["demo"].inapplicable == {"one": {"oracle": "no-gpu"}}
    assert keeping_outcomes(contract(), told).datasets["demo"].inapplicable == {"one": {"oracle": "no-gpu"}}
    other = contract({"one": TaskPin(C, (0,)), "two": TaskPin(B, (0,))})
    assert keeping_outcomes(other, told).datasets["demo"].inapplicable == {}
