"""Rows with the columns of Scale-SWE, as rows in the manner of SWE-bench.

The columns are those that the card of AweAI-Team/Scale-SWE on the Hugging Face hub documents: ``user`` and ``repo``,
``parent_commit``, ``image_url``, ``workdir``, ``pre_commands`` (to be run first in the image), and the tests that fail
as ``f2p_patch``, as ``f2p_script`` (the file test_fail_to_pass.py at the top of the repository), or both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_otval.sources.adapters.base import RefusalError
from pytest_otval.sources.adapters.fields import text_of

COLUMNS = frozenset(("user", "parent_commit", "workdir", "pre_commands", "f2p_patch", "f2p_script"))
SCRIPT = "test_fail_to_pass.py"


def is_scale_swe(row: Mapping[str, Any]) -> bool:
    """Whether a row has these columns in place of SWE-bench's."""
    return row.get("parent_commit") is not None and row.get("base_commit") is None


def as_swe(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row in SWE-bench's columns, ``workdir`` and ``pre_commands`` left as they are. Raises RefusalError."""
    tests = [text_of(row, "f2p_patch", controls=True)] if row.get("f2p_patch") else []
    if row.get("f2p_script"):
        tests.append(_adding(SCRIPT, text_of(row, "f2p_script")))
    if not tests:
        raise RefusalError("no-tests", "has neither f2p_patch nor f2p_script")
    return {
        **row,
        "repo": f"{text_of(row, 'user')}/{text_of(row, 'repo')}",
        "base_commit": row["parent_commit"],
        "test_patch": "".join(patch if patch.endswith("\n") else f"{patch}\n" for patch in tests),
    }


def _adding(path: str, content: str) -> str:
    """Return a patch that adds a file."""
    lines = content.removesuffix("\n").split("\n")
    head = (
        f"diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,{len(lines)} @@\n"
    )
    return head + "".join(f"+{line}\n" for line in lines)
