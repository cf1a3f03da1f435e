"""Findings that somebody allows: they stay, with the reason; what allows nothing is told."""

import datetime

import pytest

from pytest_otval.checks.allow import DatasetAllows
from pytest_otval.checks.registry import run_checks
from pytest_otval.task.allowed import Allowance
from pytest_otval.task.load import load_task
from selftests.checks.cases_allow import FAULTS, NEAR_MISSES
from selftests.checks.conftest import SOUND, write_task

TOML = SOUND["task.toml"]
LAST = TOML.count("\n")
"""Its last line."""
NO_SHEBANG = "curl https://example.org\necho 1 > /logs/verifier/reward.txt\n"
DANGLING = {"environment/a": ("link", "b")}


@pytest.fixture
def found(tmp_path):
    """Write the sound task with edits, and return what is found: (id, allowed, by) by path and line."""

    def run(edits, allow=(), lint=None):
        write_task(tmp_path / "task", edits)
        findings = run_checks(load_task(tmp_path / "task", "data"), None, None, DatasetAllows(allow, lint or {}))
        return {(one.check, one.path, one.line): (one.allowed, one.allowed_by) for one in findings}

    return run


def entry(check="entries-link-dangling", tasks="*", reason="it is made later"):
    return Allowance(check, tasks, reason, "ann", datetime.date(2030, 1, 31), 7)


def test_by_a_comment_on_the_line_above(found):
    text = "#!/bin/bash\nset -x\n# otval: allow network-at-verify because the page is the subject\ncurl https://example.org\n"
    results = found({"tests/test.sh": text + SOUND["tests/test.sh"]})
    reason = ("the page is the subject", "tests/test.sh:3")
    assert results["network-at-verify", "tests/test.sh", 4] == reason
    assert not [key for key in results if key[0].startswith("allow-")]


def test_a_comment_elsewhere_allows_nothing_and_is_told(found):
    text = "#!/bin/bash\nset -x\n# otval: allow network-at-verify because of x\nset +x\ncurl https://example.org\n"
    results = found({"tests/test.sh": text + SOUND["tests/test.sh"]})
    assert results["network-at-verify", "tests/test.sh", 5] == ("", "")
    assert ("allow-unused", "tests/test.sh", 3) in results


def test_by_a_comment_at_the_top_for_the_whole_file(found):
    text = "#!/bin/bash\n# otval: allow reward-missing because a plugin of the image writes it\npytest /tests\n"
    assert found({"tests/test.sh": text})["reward-missing", "tests/test.sh", None][1] == "tests/test.sh:2"


@pytest.mark.parametrize(
    ("comment", "check"),
    [
        ("allow reward-missing", "allow-no-reason"),
        ("allow reward-missin because x", "allow-unknown"),
        ("allow", "allow-unknown"),
        ("allow text-bom because x", "allow-unused"),
        ("allow toml-parse because x", "allow-unused"),
        ("allow allow-unused because x", "allow-unused"),
    ],
)
def test_a_comment_without_effect_is_a_finding(found, comment, check):
    results = found({"tests/test.sh": f"#!/bin/bash\n# otval: {comment}\npytest /tests\n"})
    assert (check, "tests/test.sh", 2) in results
    assert results["reward-missing", "tests/test.sh", None] == ("", "")


def test_by_the_table_in_task_toml(found):
    results = found({**DANGLING, "task.toml": f'{TOML}[metadata.otval.allow]\nentries-link-dangling = "made later"\n'})
    assert results == {("entries-link-dangling", "environment/a", None): ("made later", f"task.toml:{LAST + 2}")}


@pytest.mark.parametrize(
    ("table", "check", "line"),
    [
        ('[metadata.otval.allow]\nentries-link-dangling = ""\n', "allow-no-reason", 2),
        ("[metadata.otval.allow]\nentries-link-dangling = 1\n", "allow-no-reason", 2),
        ('[metadata.otval.allow]\nentries-dangling = "x"\n', "allow-unknown", 2),
        ('[metadata.otval.allow]\ntext-bom = "x"\n', "allow-unused", 2),
        ('[metadata.otval]\nallow = "all"\n', "allow-unknown", 2),
    ],
)
def test_a_table_without_effect_is_a_finding(found, table, check, line):
    results = found({**DANGLING, "task.toml": TOML + table})
    assert results.keys() == {(check, "task.toml", LAST + line), ("entries-link-dangling", "environment/a", None)}
    assert set(results.values()) == {("", "")}


@pytest.mark.parametrize("metadata", ["[metadata]\notval = 1\n", '[metadata]\nx = "otval: allow"\n'])
def test_other_metadata_allows_nothing(found, metadata):
    assert {check for check, _, _ in found({"task.toml": TOML + metadata})} <= {"toml-otval"}


def test_findings_of_task_toml_itself(found):
    toml = TOML + "bogus = 1  # otval: allow toml-unknown-field because the site reads it\n"
    assert found({"task.toml": toml}) == {
        ("toml-unknown-field", "task.toml", LAST + 1): ("the site reads it", f"task.toml:{LAST + 1}")
    }


def test_what_no_schema_reads_allows_nothing_of_itself(found):
    toml = '[metadata.otval.allow]\ntoml-invalid = "x"\nentries-link-dangling = "y"\n[agent]\ntimeout_sec = "x"\n'
    results = found({**DANGLING, "task.toml": toml})
    assert results["toml-invalid", "task.toml", 5] == ("", "")
    assert results["entries-link-dangling", "environment/a", None] == ("y", "task.toml:3")
    assert ("allow-unused", "task.toml", 2) in results


def test_by_dataset_toml(found):
    results = found(DANGLING, [entry()])
    assert set(results.values()) == {("it is made later", "dataset.toml:7 (ann until 2030-01-31)")}


def test_what_the_dataset_allows_in_many_tasks_may_be_unused_in_one(found):
    assert found({}, [entry(), entry(tasks="other")]) == {}


def test_what_the_dataset_allows_in_this_task_must_be_found(found):
    assert found({}, [entry(tasks="task")]).keys() == {("allow-unused", "task.toml", None)}


def test_by_a_rule_that_harbor_lint_does_not_apply(found):
    toml = f'{TOML}bogus = 1\n[metadata.harbor.lint]\nignore = ["unknown-config-field"]\n'
    assert found({"task.toml": toml}) == {
        ("toml-unknown-field", "task.toml", LAST + 1): (
            "harbor lint does not apply unknown-config-field",
            "[metadata.harbor.lint]",
        )
    }


def test_by_a_rule_that_the_dataset_does_not_apply(found):
    results = found({"task.toml": f"{TOML}bogus = 1\n"}, lint={"ignore": ["unknown-config-field"]})
    assert results["toml-unknown-field", "task.toml", LAST + 1][1] == "[metadata.harbor.lint]"


def test_a_lint_table_that_harbor_refuses_is_a_finding(found):
    toml = f'{TOML}[metadata.harbor.lint]\nignore = ["nothing"]\n'
    assert found({"task.toml": toml}).keys() == {("allow-unknown", "task.toml", LAST + 1)}


def test_the_first_reason_is_kept_and_each_is_used(found):
    text = "#!/bin/bash\n# otval: allow reward-missing because of a\npytest /tests\n"
    toml = f'{TOML}[metadata.otval.allow]\nreward-missing = "b"\n'
    results = found({"tests/test.sh": text, "task.toml": toml})
    assert results["reward-missing", "tests/test.sh", None][0] == "of a"
    assert not [key for key in results if key[0] == "allow-unused"]


def test_hostile_reasons_can_be_shown(found):
    text = "#!/bin/bash\n# otval: allow reward-missing because \x1b[31m\u202e" + "x" * 5000 + "\npytest /tests\n"
    reason, _ = found({"tests/test.sh": text})["reward-missing", "tests/test.sh", None]
    assert reason.isprintable()
    assert len(reason) < 400


def test_links_are_not_followed_for_comments(found, tmp_path):
    (tmp_path / "outside.sh").write_text("# otval: allow nothing because x\n")
    results = found({"environment/key": ("link", "../../outside.sh"), "tests/pipe": ("fifo", "")})
    assert not [key for key in results if key[0].startswith("allow-")]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.check)
def test_a_fault_is_found_on_its_line(found, fault):
    assert (fault.check, fault.path, fault.line) in found(fault.edits)


@pytest.mark.parametrize(("check", "edits"), NEAR_MISSES, ids=[check for check, _ in NEAR_MISSES])
def test_a_near_miss_is_passed_over(found, check, edits):
    assert check not in {id for id, _, _ in found(edits)}
