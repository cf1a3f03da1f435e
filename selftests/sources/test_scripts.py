"""Edits of scripts: all that is not edited stays, byte for byte, and the result is a script."""

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_otval.sources.editor import PatchError, TaskEditor
from pytest_otval.sources.library.trap import GUARD, with_floor
from pytest_otval.sources.scripts import ScriptEdit, functions, in_own_shell

LINES = st.sampled_from(
    [
        "set -e",
        "pytest /tests/x.py || exit 1",
        "exec python3 /tests/grade.py",
        "A=1 exec env > /tmp/log 2>&1",
        "trap 'rm -f /tmp/x; exit 1' EXIT",
        'trap "echo \\"it\'s $HOME\\"" EXIT TERM',
        "trap cleanup 0",
        "cleanup() { rm -f x; }",
        "if exec true; then echo ä; fi",
        "(exec true) | cat",
        "cat <<'EOF'\nexec not a command\nEOF",
        "for x in a b; do exec echo $x; done &",
        "# exec nothing",
        "echo 1 > /logs/verifier/reward.txt; exit",
    ]
)


@pytest.fixture
def edit(tmp_path):
    def made(text, name="test.sh"):
        (tmp_path / name).write_text(text)
        return ScriptEdit(TaskEditor(tmp_path, "data"), name)

    return made


@settings(max_examples=60, deadline=None)
@given(st.lists(LINES, max_size=7).map("\n".join), st.sampled_from(["#!/bin/bash\n", "#!/usr/bin/env bash\n", ""]))
def test_a_floor_goes_under_any_script_and_once(tmp_path_factory, body, shebang):
    folder = tmp_path_factory.mktemp("task")
    (folder / "test.sh").write_text(shebang + body)
    editor = TaskEditor(folder, "data")
    for _ in range(2):
        script = ScriptEdit(editor, "test.sh")
        with_floor(script)
        script.save()
    text = editor.text("test.sh")
    assert text.startswith(shebang + GUARD)
    assert text.count("ot_reward_floor() {") == 1
    assert subprocess.run(["bash", "-n", folder / "test.sh"], check=False).returncode == 0
    # Without what was put in, it is what it was.
    plain = text.removeprefix(shebang + GUARD)
    for added in (
        "'{ ot_reward_floor; '",
        "'\n} || :; ot_reward_floor'",
        "'\n} || :'",
        "'{ '",
        "; exit; }",
        "{ ",
        "exec ",
    ):
        plain, body = plain.replace(added, ""), body.replace(added, "")
    assert plain == body


@pytest.mark.parametrize("text", ["if true; then", "#!/bin/bash\r\ntrue\r\n"])
def test_what_is_no_script_is_refused(edit, text):
    with pytest.raises(PatchError):
        edit(text)


def test_an_edit_that_breaks_the_script_is_refused(edit, tmp_path):
    script = edit("true\n")
    script.at_start("if\n")
    with pytest.raises(PatchError, match="is no shell script"):
        script.save()
    assert (tmp_path / "test.sh").read_text() == "true\n"


def test_a_line_goes_in_front_of_the_whole_statement(edit, tmp_path):
    script = edit("if x; then\n    A=1 b | c > d\nfi\n")
    script.before(script.commands[2], "first")
    script.save()
    assert (tmp_path / "test.sh").read_text() == "if x; then\n    first\n    A=1 b | c > d\nfi\n"


def test_bodies_of_functions_and_what_runs_in_a_shell_of_its_own(edit):
    script = edit("f() { a; }\nfunction g { (b); }\nc | d\ne=$(i)\n")
    assert sorted(functions(script.root)) == ["f", "g"]
    assert [one.texts[0] for one in script.commands if in_own_shell(one.node)] == ["b", "c", "d", "i"]
