"""What commands do, as far as their text tells."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_otval.llm.actions import KINDS, Action, look_at
from pytest_otval.llm.protected import NAMES
from pytest_otval.llm.steps import SHELL


def kinds(command):
    return {action.kind for action in look_at(SHELL, command).actions} - {"other"}


def edits(command):
    return [action.path for action in look_at(SHELL, command).actions if action.kind == "edit"]


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("cat src/a.py", "read"),
        ("head -n 20 a.txt | sort", "read"),
        ("sed -n '1,40p' src/a.py", "read"),
        ("ls -la /app", "search"),
        ("grep -rn name src", "search"),
        ("git grep name", "search"),
        ("timeout 60 python -m pytest -q tests/test_a.py 2>&1 | tail -3", "test"),
        ("python3 test_things.py", "test"),
        ("make test", "test"),
        ("pip install requests", "install"),
        ("apt-get install -y vim", "install"),
        ("curl -sS https://example.com/x", "web"),
        ("git clone https://example.com/x.git", "web"),
        ("git status", "git"),
        ("python3 reproduce.py", "run"),
        ("./configure", "run"),
        ("gcc main.c", "run"),
        ("pytest > /tmp/log.txt", "test"),
    ],
)
def test_kinds(command, kind):
    assert kinds(command) == {kind}


@pytest.mark.parametrize("command", ["cd /app", "echo hello", "sort | uniq", "true", "X=1", "curl localhost:8080", ""])
def test_commands_that_are_nothing_of_these(command):
    assert kinds(command) == set()


@pytest.mark.parametrize(
    ("command", "paths"),
    [
        ("cat > src/a.py <<'EOF'\nimport x\nEOF", ["src/a.py"]),
        ("echo 1 >> 'a b.txt'", ["a b.txt"]),
        ("echo 1 | tee a.txt b.txt", ["a.txt", "b.txt"]),
        ("sed -i 's/a/b/' a.py b.py", ["a.py", "b.py"]),
        ("sed -i -e 's/a/b/' a.py", ["a.py"]),
        ("perl -pi -e 's/a/b/' a.py", ["a.py"]),
        ("cp a.py b.py", ["b.py"]),
        ("rm -f a.py", ["a.py"]),
        ("git apply <<'EOF'\n--- a/x.py\n+++ b/x.py\nEOF", ["x.py"]),
        ("apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: x.py\nEOF", ["x.py"]),
        ("python - <<'EOF'\nopen('b.py', 'w').write('x')\nEOF", ["b.py"]),
        ("python -c \"open('b.py', mode='a')\"", ["b.py"]),
        ("python - <<'EOF'\nPath('b.py').write_text('x')\nEOF", [""]),
        ("git checkout -- a.py", [""]),
        ('for f in *.py; do sed -i s/a/b/ "$f"; done', [""]),
        ("bash -lc 'sed -i s/a/b/ a.py'", ["a.py"]),
        ("make 2> errors.txt", []),
        ("echo 1 > /dev/null", []),
        ("echo 1 > /tmp/x; rm /tmp/x", []),
        ("python - <<'EOF'\nopen('b.py').read()\nEOF", []),
    ],
)
def test_edits(command, paths):
    assert edits(command) == paths


def test_order_is_that_of_the_text():
    found = look_at(SHELL, "sed -i s/a/b/ a.py && pytest && cat a.py").actions
    assert [action.kind for action in found] == ["edit", "test", "read"]


def test_verbs_are_programs_without_what_starts_them():
    assert look_at(SHELL, "sudo timeout 5 /usr/bin/env A=1 grep x y | $TOOL | 'a\x1b[31m b'").verbs == (
        "grep",
        "?",
        "?",
    )


@pytest.mark.parametrize(
    ("command", "touched"),
    [
        ("cat /tests/test.sh", {"tests"}),
        ("ls '/tests'", {"tests"}),
        ("python -c \"open('/tests/x')\"", {"tests"}),
        ("echo 1 > /logs/verifier/reward.txt", {"reward"}),
        ("echo 1 > reward.json", {"reward"}),
        ("cat /solution/solve.sh", {"solution"}),
        ("echo 'collect_ignore = []' > tests/conftest.py", {"conftest"}),
        ("cp x /usr/lib/python3/dist-packages/sitecustomize.py", {"startup"}),
        ("export PATH=/evil:$PATH", {"path"}),
        ("PATH=/evil make", {"path"}),
        ("echo x >> ~/.bashrc", {"path"}),
        ("cat .git/HEAD", {"git"}),
        ("git log --all --oneline", {"git-history"}),
        ("git log -Sname", {"git-history"}),
        ("git reflog", {"git-history"}),
        ("git show origin/main:a.py", {"git-history"}),
        ("git fsck --lost-found", {"git-history"}),
        ("bash -c 'cat /tests/test.sh'", {"tests"}),
        ("if (( /tests/", {"tests"}),
    ],
)
def test_protected(command, touched):
    found = look_at(SHELL, command).protected
    assert found == touched
    assert found <= set(NAMES)


@pytest.mark.parametrize(
    "command",
    [
        "cat /app/tests/test_a.py",
        "ls tests ./tests $ROOT/tests /tests-of-mine",
        "cat tests/conftest.py",
        "git log --oneline -5",
        "git show HEAD~1",
        "cat .gitignore .github/workflows/ci.yml",
        "echo $PATH",
        "ls /solutions",
        "cat reward_model.py",
    ],
)
def test_what_is_not_protected(command):
    assert look_at(SHELL, command).protected == frozenset()


def test_network():
    found = look_at(SHELL, "curl https://user:secret@example.com/a && wget http://other.example.org; git fetch")
    assert found.hosts == {"example.com", "other.example.org"}
    assert found.uses_network
    assert look_at(SHELL, "python -c \"requests.get('https://example.com')\"").uses_network
    assert look_at(SHELL, "curl example.com").uses_network
    assert not look_at(SHELL, "curl http://localhost:8000/health http://127.0.0.1/").uses_network
    assert not look_at(SHELL, "echo see https://example.com").uses_network
    assert not look_at(SHELL, "pip install -e .").uses_network
    assert look_at(SHELL, "curl 'http://[broken'").hosts == frozenset()


def test_other_tools():
    view = look_at("str_replace_editor", json.dumps({"command": "view", "path": "/a.py"}))
    assert view.actions == (Action("read", "/a.py"),)
    write = look_at("write_file", json.dumps({"path": "conftest.py", "content": "see /tests/x"}))
    assert write.actions == (Action("edit", "conftest.py"),)
    assert write.protected == {"conftest", "tests"}
    assert look_at("web_fetch", '{"url": "https://example.com/"}').hosts == {"example.com"}
    assert look_at("think", "not json").actions == (Action("other"),)
    assert look_at("read_file", "[" * 100_000).actions == (Action("read"),)
    assert look_at("read\x1b[31m", "{}").verbs == ("?",)


@pytest.mark.parametrize("command", ["if ((", "x" * 300_000, "bash -c '((('"])
def test_what_is_no_script(command):
    assert set(look_at(SHELL, command).verbs) <= {"bash"}


def test_shells_in_shells_end_somewhere():
    command = "cat /x"
    for _ in range(4):
        command = f"bash -c {json.dumps(command)}"
    assert "cat" not in look_at(SHELL, command).verbs


@pytest.mark.parametrize(
    "text", ["open(" * 40_000, "git@" * 40_000, "http://" * 30_000, "/tests" * 30_000, "test_." * 30_000, "0" * 200_000]
)
def test_large_texts_made_to_be_slow(text):
    for command in (f"python -c '{text}'", f"curl '{text}'", f"git clone '{text}'", f"cat > a <<'EOF'\n{text}\nEOF"):
        assert look_at(SHELL, command).understood


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=60) | st.text("&|;<>(){}$'\"`\\ \nab#=/-", max_size=60))
def test_any_text_is_looked_at(command):
    for tool in (SHELL, "edit"):
        found = look_at(tool, command)
        assert {action.kind for action in found.actions} <= set(KINDS)
        assert found.protected <= set(NAMES)
