"""Running all checks: order, crashes, and content that no sane author writes."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_otval.checks import registry
from pytest_otval.checks.registry import Check, all_checks, run_checks
from pytest_otval.core import Conclusion, Severity
from pytest_otval.task.load import load_task
from selftests.checks.conftest import write_task


def test_ids_are_stable_words_and_texts_are_one_line():
    for name, check in all_checks().items():
        assert name == check.id
        assert check.family in registry.FAMILIES
        for text in (check.explains, check.fix):
            assert text
            assert "\n" not in text


def test_findings_are_sorted_by_path_and_line(look):
    found = look(
        {"tests/test.sh": "curl https://example.org\necho 1 > /logs/verifier/reward.txt\n", "tests/a.sh": "a\r\n"}
    )
    assert [one.path for one in found] == sorted(one.path for one in found)
    assert len({one.path for one in found}) > 1


def test_a_check_that_crashes_is_an_error_of_ours(look, monkeypatch):
    def crash(context):
        raise ZeroDivisionError("x")
        yield

    broken = Check("broken", Severity.ERROR, "files", "explains", "fix", crash)
    monkeypatch.setattr(registry, "all_checks", lambda: {"broken": broken})
    with pytest.raises(Conclusion, match=r"check broken crashed on .*ZeroDivisionError: x") as caught:
        look()
    assert caught.value.reason == "internal"


def test_a_conclusion_of_a_check_goes_through(look, monkeypatch):
    def conclude(context):
        raise Conclusion("missing-tool", "bash is not on this machine")
        yield

    monkeypatch.setattr(
        registry, "all_checks", lambda: {"one": Check("one", Severity.ERROR, "files", "", "", conclude)}
    )
    with pytest.raises(Conclusion) as caught:
        look()
    assert caught.value.reason == "missing-tool"


def test_a_task_without_a_readable_toml_is_still_looked_at(look):
    found = look({"task.toml": "= broken", "environment/pipe": ("fifo", "")})
    assert {"toml-parse", "entries-special"} <= {one.check for one in found}


def test_an_empty_folder(tmp_path):
    assert [one.check for one in run_checks(load_task(tmp_path, "data"))] == ["toml-missing"]


def test_hostile_names_are_printable(look):
    found = look({"environment/\x1b[31m\n\udce9": ("fifo", "")})
    assert [one.path for one in found] == ["environment/\\x1b[31m\\n\\udce9"]
    str(found[0]).encode()


FILES = ("task.toml", "instruction.md", "environment/Dockerfile", "environment/.dockerignore", "tests/test.sh",
         "tests/test_outputs.py", "tests/test_x.py", "solution/solve.sh", "tests/Dockerfile")  # fmt: skip
CONTENT = st.binary(max_size=60) | st.sampled_from(
    [
        b"\xef\xbb\xbf#!/bin/sh\r\n",
        b"FROM a\nCOPY [a\n",
        b"def test(:\n",
        b"\0" * 9,
        b"#!/bin/bash\nset -e\npytest\n",
        b"!**/[\n",
    ]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(st.dictionaries(st.sampled_from(FILES), CONTENT, min_size=1))
def test_no_content_crashes_a_check(tmp_path_factory, edits):
    folder = tmp_path_factory.mktemp("task")
    for name, content in edits.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    run_checks(load_task(folder, "data"))


def test_warnings_about_a_tasks_source_are_nobodys(tmp_path):
    """Nor may a finding depend on pytest's -W."""
    text = 'def test_answer():\n    assert open("/app/answer.txt").read() != "\\m"\n'
    write_task(tmp_path / "task", {"tests/test_outputs.py": text})
    task, found = load_task(tmp_path / "task", "data"), []
    for action in ("error", "ignore"):
        with warnings.catch_warnings():
            warnings.simplefilter(action)
            found.append(run_checks(task))
    assert found[0] == found[1]
