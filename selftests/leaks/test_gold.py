"""The lines that patches add."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.leaks.gold import ENOUGH, Gold, parsed
from selftests.leaks.conftest import ADDED, AFTER, BEFORE, PATCH

LINES = st.sampled_from(
    [*PATCH.splitlines(), "+++ b/x", "--- a/x", "@@ -1,9 +1,9 @@", "@@ -0,0 +1 @@", "\\ No newline", ""]
)


def test_what_a_patch_adds():
    (file,) = parsed("fix.patch", PATCH, first=3)
    (run,) = file.runs
    assert (file.path, run.line) == ("src/app.py", 10)
    assert run.text.split("\n") == ["", *(line.strip() for line in ADDED.splitlines()), ""]
    assert run.needle == b"total = sum(entry.amount for entry in ledger)"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("a/", "a/", "src/app.py"),
        ("--- a/src/app.py\n+++ b/src/app.py", "--- src/app.py\n+++ src/app.py", "src/app.py"),
        ("--- a/src/app.py", "--- /dev/null", "src/app.py"),
        ("b/src/app.py\n@@", "b/src/./app.py\n@@", "src/app.py"),
    ],
)
def test_path(old, new, expected):
    (file,) = parsed("p", PATCH.partition("\n")[2].replace(old, new))
    assert file.path == expected
    assert file.is_at("testbed/src/app.py")
    assert not file.is_at("testbed/mysrc/app.py")


@pytest.mark.parametrize(
    "patch",
    ["", "text", PATCH.replace("+1,6", "+1,9"), PATCH.replace("    for entry in ledger.pending():", "    }")[:-20]],
)
def test_what_is_no_patch_adds_nothing(patch):
    assert parsed("p", patch) == []


def test_patch_of_git_without_prefixes():
    (file,) = parsed("p", PATCH.replace(" a/", " ").replace(" b/", " "))
    assert file.path == "src/app.py"


def test_brackets_and_short_lines_do_not_count():
    added = ["+{", "+    return answer_of_the_question(number, one, two, three)", "+  x", "+}", "+  fi"]
    patch = "--- a/x\n+++ b/x\n@@ -1 +1,6 @@\n a\n" + "\n".join(added) + "\n"
    assert parsed("p", patch) == []
    patch = patch.replace("+  x", "+    and_another_line()").replace("+  fi", "+    third_line()")
    (file,) = parsed("p", patch)
    assert [(run.line, run.text.count("\n")) for run in file.runs] == [(6, 5)]


def test_hits():
    gold = Gold(tuple(parsed("p", PATCH)))
    (hit,) = gold.hits("app/src/app.py", AFTER.replace("    ", "\t").encode())
    assert (hit.applied, hit.line, hit.share) == (True, 2, 1)
    (hit,) = gold.hits("other", f"a\nb\n{ADDED}".encode())
    assert (hit.applied, hit.line) == (False, 3)
    assert hit.share >= ENOUGH
    assert gold.hits("app/src/app.py", BEFORE.encode()) == []
    assert gold.hits("other", ADDED.replace("\n", "\n#\n").encode()) == []
    assert gold.hits("other", b"\xff" + AFTER.encode()) != []


@given(st.lists(LINES, max_size=30).map("\n".join) | st.text(), st.binary())
def test_no_patch_and_no_text_makes_it_raise(patch, raw):
    gold = Gold(tuple(parsed("p", patch)))
    gold.hits("x", raw)
    gold.hits("src/app.py", raw + AFTER.encode())
