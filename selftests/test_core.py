from pathlib import Path

import pytest

from pytest_otval import core
from pytest_otval.core import REASONS, Conclusion, Finding, Severity, StageResult, Verdict, node_id

PACKAGE = Path(core.__file__).parent


def test_reasons_are_words_with_hyphens_and_say_what_they_mean():
    for name, reason in REASONS.items():
        assert name.replace("-", "").isalpha() and name.islower()
        assert reason.meaning and "\n" not in reason.meaning


def test_each_verdict_has_a_reason():
    assert {reason.verdict for reason in REASONS.values()} == set(Verdict)
    assert [name for name, reason in REASONS.items() if reason.verdict is Verdict.PASS] == ["expected", "unsolved"]


@pytest.mark.parametrize("reason", REASONS)
def test_reason_fixes_the_verdict(reason):
    assert StageResult(reason).verdict is REASONS[reason].verdict


def test_conclusion_takes_known_reasons_only():
    with pytest.raises(AssertionError):
        Conclusion("no-such-class", "headline")


def test_no_module_concludes_with_an_unknown_reason():
    """A wrong class would show only on the rare path that uses it."""
    import ast

    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("Conclusion", "StageResult"):
                first = node.args[0] if node.args else None
                if isinstance(first, ast.Constant):
                    assert first.value in REASONS, f"{path}:{node.lineno}"


@pytest.mark.parametrize(
    ("task", "stage", "expected"),
    [
        ("hello", "oracle", "datasets/demo/tasks/hello/task.toml::oracle"),
        (None, "static", "datasets/demo/dataset.toml::static"),
    ],
)
def test_node_id(task, stage, expected):
    assert node_id("demo", task, stage) == expected


def test_finding_in_one_line():
    finding = Finding("toml-parse", Severity.ERROR, "no TOML", "task.toml", 3, "mend it")
    assert str(finding) == "task.toml:3: toml-parse: no TOML (mend it)"
    assert str(Finding("x", Severity.INFO, "m", "tests")) == "tests: x: m"
    assert finding.as_dict() == {
        "check": "toml-parse",
        "severity": "error",
        "message": "no TOML",
        "path": "task.toml",
        "line": 3,
        "fix": "mend it",
    }
