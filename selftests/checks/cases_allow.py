"""Faults and near misses of what is allowed."""

from __future__ import annotations

from pytest_otval.core import Severity
from selftests.checks.conftest import SOUND
from selftests.checks.test_check_cases import Fault

TEST = SOUND["tests/test.sh"]
CALL = "curl https://example.org/\n"


def test_with(comment: str, call: str = CALL) -> dict[str, object]:
    return {"tests/test.sh": TEST.replace("\n", f"\nset +e\n{comment}\n{call}", 1)}


test_with.__test__ = False  # type: ignore[attr-defined]

W = Severity.WARNING

FAULTS = [
    Fault("allow-no-reason", test_with("# otval: allow network-at-verify"), "tests/test.sh", 3, W),
    Fault("allow-unknown", test_with("# otval: allow network-in-tests because of x"), "tests/test.sh", 3, W),
    Fault("allow-unused", test_with("# otval: allow network-at-verify because of x", ""), "tests/test.sh", 3, W),
]

NEAR_MISSES = [
    (check, test_with("# otval: allow network-at-verify because the page is the subject"))
    for check in ("allow-no-reason", "allow-unknown", "allow-unused")
]
