"""What all adapters have in common."""

import pytest

from pytest_otval.core import OtvalUsageError
from pytest_otval.sources.adapters import base
from pytest_otval.sources.adapters.base import Converted, Record, RefusalError, Refused, convert_all
from pytest_otval.sources.adapters.registry import ADAPTERS, make_adapter
from pytest_otval.sources.files import File


def outcome(name="one", files=None):
    return next(convert_all([Record(name, lambda _: {"a": File(b"")} if files is None else files)]))


def test_a_record_becomes_a_task_of_its_name():
    assert outcome("a/b") == Converted("a_x2Fb", {"a": File(b"")})


def test_a_refused_record_does_not_end_the_others():
    def refuse(_):
        raise RefusalError("no-tests", "has\nnone\x1b[31m" + "x" * 1000)

    first, second = convert_all([Record("one", refuse), Record("two", lambda _: {"a": File(b"")})])
    assert isinstance(first, Refused)
    assert first.reason == "no-tests"
    assert first.why.isprintable() and len(first.why) < 700
    assert second.name == "two"


def test_a_second_record_of_a_name_is_refused():
    first, second = convert_all(Record("one", lambda _: {"a": File(b"")}) for _ in range(2))
    assert isinstance(first, Converted)
    assert (second.name, second.reason) == ("one", "duplicate")


@pytest.mark.parametrize("name", ["", "a\nb", "a\0b", "\udc80", "x" * 10_000])
def test_a_name_that_cannot_be_written_is_refused(name):
    refused = outcome(name)
    assert refused.reason == "bad-name"
    assert refused.name.isprintable() and len(refused.name) <= 200


@pytest.mark.parametrize(
    "path", ["/a", "../a", "a/../../b", "a//b", "./a", "a\0b", "a/", "x/" * 70 + "y", "a" * 300, "", "."]
)
def test_a_path_that_leads_elsewhere_is_refused(path):
    assert outcome(files={path: File(b"")}).reason == "unsafe-path"


def test_a_file_below_a_file_is_refused():
    assert outcome(files={"a": File(b""), "a/b": File(b"")}).reason == "unsafe-path"


def test_a_task_that_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr(base, "MAX_TASK_BYTES", 10)
    assert outcome(files={"a": File(b"123456"), "b": File(b"12345")}).reason == "too-large"


@pytest.mark.parametrize("name", ADAPTERS)
def test_each_adapter_can_be_had_by_its_name(name):
    assert make_adapter(name).name == name


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("sew", {}, "did you mean swe?"),
        ("?", {}, "there are bugsinpy, "),
        ("swe", {"workdri": "/a"}, "workdri"),
        ("swe", {"workdir": "a; b"}, "workdir"),
        ("swe", {"workdir": 3}, "workdir"),
        ("swe", {"network": "some"}, "network"),
        ("swe", {"agent_seconds": 0}, "agent_seconds"),
    ],
)
def test_what_there_is_none_of_is_wrong_usage(name, options, said):
    with pytest.raises(OtvalUsageError, match=said.replace("?", r"\?")):
        make_adapter(name, options)
