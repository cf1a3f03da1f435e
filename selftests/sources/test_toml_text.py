"""Lines added to a TOML text."""

import pytest
import tomli
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_otval.sources.editor import TaskEditor
from pytest_otval.sources.toml_text import with_values
from selftests.checks.conftest import write_task


@pytest.mark.parametrize(
    ("before", "table", "values", "after"),
    [
        ("", "a", {"b": 1}, "\n[a]\nb = 1\n"),
        ("x = 1", "a.b", {"c d": "é\n"}, 'x = 1\n\n[a.b]\n"c d" = "é\\n"\n'),
        ("[a]\n# its own\nx = 1\n\n# of b\n[b]\n", "a", {"y": 2.5}, "[a]\n# its own\nx = 1\ny = 2.5\n\n# of b\n[b]\n"),
        ("[a]\nx = 1", "a", {"y": True}, "[a]\nx = 1\ny = true"),
    ],
)
def test_values_are_put_where_the_table_is(before, table, values, after):
    assert with_values(before, table, values) == after


@pytest.mark.parametrize(
    "before",
    [
        "a = {x = 1}\n",
        "a.x = 1\n",
        "[a]\ny = 1\n",
        "a = 1\n",
        "a = [1]\n",
        's = """\n[a]\n"""\n[a.b]\n',
        "no toml",
        "[[a]]\nx = 1\n",
        "x = nan\n",
    ],
)
def test_what_lines_cannot_do_is_left(before):
    found = with_values(before, "a", {"y": 2})
    assert found is None or tomli.loads(found)["a"]["y"] == 2 != tomli.loads(before).get("a", {}).get("y")


SIMPLE = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES = st.dictionaries(SIMPLE, SIMPLE | st.integers(-(10**9), 10**9) | st.booleans(), max_size=3)


@settings(max_examples=60)
@given(
    st.lists(st.sampled_from(["[a]", "[a.b]", "[[c]]", "x = 1", "# [a]", 's = """', '"""', "", "a.z = 2"]), max_size=7),
    st.sampled_from(["a", "a.b", "c"]),
    VALUES,
)
def test_whatever_is_written_only_these_values_are_added(lines, table, values):
    text = "\n".join(lines)
    found = with_values(text, table, values)
    if found is None:
        return
    place = wanted = tomli.loads(text)
    for name in table.split("."):
        place = place.setdefault(name, {})
    place.update(values)
    assert tomli.loads(found) == wanted
    assert [line for line in lines if line not in found.split("\n")] == []


def test_a_table_that_is_written_in_another_way_is_changed_all_the_same(tmp_path):
    write_task(tmp_path / "one", {"task.toml": "# mine\nagent = {timeout_sec = 1.0} # short\n"})
    task = TaskEditor(tmp_path / "one", "data")
    task.put("agent", {"timeout_sec": 60.0})
    task.put("environment", {"cpus": 2})
    assert task.text("task.toml") == "# mine\nagent = {timeout_sec = 60.0} # short\n\n[environment]\ncpus = 2\n"
