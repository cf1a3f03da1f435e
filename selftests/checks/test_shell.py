"""Reading shell scripts: the grammar's oddities are put right, and no text is too odd."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.checks import shell_ast as ast
from pytest_otval.checks.shell import MAX_DEPTH, MAX_SCRIPT, parse_shell
from pytest_otval.checks.shell_commands import Kind, kind_of, unwrapped


def body(text):
    script = parse_shell(text)
    assert script is not None
    return script.body


def targets(node):
    return [one.target.literal for one in node.redirects]


def test_a_redirect_belongs_to_the_last_command_of_a_list():
    node = body("a && b > one || c > two")
    assert (node.operator, node.left.operator) == ("||", "&&")
    assert [targets(part) for part in (node.left.left, node.left.right, node.right)] == [[], ["one"], ["two"]]


def test_a_redirect_belongs_to_the_last_command_of_a_pipeline():
    node = body("a | b > one")
    assert [targets(part) for part in node.body] == [[], ["one"]]


def test_what_follows_a_here_document_on_its_line():
    node = body("cat <<'EOF' > one && next\ntext $x\nEOF\n")
    assert targets(node.left) == ["one"]
    assert node.left.stdin.literal == "text $x\n"
    assert node.right.words[0].literal == "next"


def test_a_pipe_behind_a_here_document():
    node = body("cat <<EOF | tee one\ntext\nEOF\n")
    assert [part.words[0].literal for part in node.body] == ["cat", "tee"]


@pytest.mark.parametrize(
    ("word", "literal"),
    [
        ("a", "a"),
        ("'a b'", "a b"),
        ('"a b"', "a b"),
        ("a\\ b", "a b"),
        ("a'b'\"c\"", "abc"),
        ('"a\\"b"', 'a"b'),
        ("$x", None),
    ],
)
def test_words(word, literal):
    assert body(f"echo {word}").words[1].literal == literal


def test_blanks_between_expansions_are_kept():
    parts = body('echo "$a $b"').words[1].parts
    assert parts == (ast.Variable("a"), " ", ast.Variable("b"))


def test_defaults_of_variables():
    assert body("echo ${x:-/tmp}").words[1].parts == (ast.Variable("x", ast.Word(("/tmp",))),)


@pytest.mark.parametrize(
    ("text", "condition", "negated"),
    [
        ("[ $? -eq 0 ]", "-eq", False),
        ("[[ $? != 0 ]]", "!=", False),
        ("(( $? == 0 ))", "-eq", False),
        ("[ ! -f x ]", "-f", True),
        ("[ -n x ]", "-n", False),
    ],
)
def test_tests(text, condition, negated):
    node = body(text)
    assert (node.condition.operator, node.negated) == (condition, negated)


@pytest.mark.parametrize("text", ["[ a -o b ]", "[[ a && b ]]", "[[ $x =~ ^a ]]", "(( a + b ))"])
def test_tests_that_only_a_shell_decides(text):
    assert body(text).condition is None


def test_commands_at_any_depth_with_their_lines():
    script = parse_shell('if a; then\n  b "$(c "$(d)")"\nfi\nf() {\n  e &\n}\n(g | h)\nx=$(i)\n')
    assert [(one.name, one.line) for one in script.commands] == [
        ("a", 1), ("b", 2), ("c", 2), ("d", 2), ("e", 5), ("g", 7), ("h", 7), ("i", 8),
    ]  # fmt: skip


def test_crlf_is_read_like_lf():
    assert body("a\r\nb\r\n") == body("a\nb\n")


@pytest.mark.parametrize(
    "text", ["if", "a (", "{ " * (MAX_DEPTH + 1) + "a;" + " }" + "; }" * MAX_DEPTH, "a\n" * MAX_SCRIPT]
)
def test_what_is_not_understood_is_none(text):
    assert parse_shell(text) is None


SHELL = st.lists(
    st.sampled_from(
        [
            "a",
            "if",
            "then",
            "else",
            "elif",
            "fi",
            "for",
            "in",
            "do",
            "done",
            "while",
            "case",
            "esac",
            ";;",
            ";",
            "&",
            "&&",
            "||",
            "|",
            "(",
            ")",
            "{",
            "}",
            "[",
            "]",
            "[[",
            "]]",
            "((",
            "))",
            "$",
            "$(",
            "${",
            "}",
            "`",
            '"',
            "'",
            "\\",
            "<",
            ">",
            ">>",
            "<<",
            "<<<",
            "EOF",
            "\n",
            "\x00",
            "=",
            "x=",
            "$?",
            "!",
            "*",
            "#",
            "é",
            "",
        ]
    ),
    max_size=30,
).map(" ".join)


@given(SHELL | st.text(max_size=80))
def test_no_text_is_too_odd(text):
    script = parse_shell(text)
    assert script is None or isinstance(script.commands, tuple)


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("pytest -q", Kind.RUNNER),
        ("timeout 60 python3 -m pytest", Kind.RUNNER),
        ("uvx --with x pytest", Kind.RUNNER),
        ("npx jest", Kind.RUNNER),
        ("go test ./...", Kind.RUNNER),
        ("./gradlew :app:test", Kind.RUNNER),
        ("npm run test:unit", Kind.RUNNER),
        ("python3 /tests/check.py", Kind.RUNNER),
        ("/tests/check", Kind.RUNNER),
        ("python3 /tests/setup_check.py", Kind.CODE),
        ("go build", Kind.HARMLESS),
        ("python3 -m pip install pytest-xdist", Kind.HARMLESS),
        ("command -v pytest", Kind.HARMLESS),
        ("cp a b", Kind.HARMLESS),
        ("echo pytest", Kind.ALWAYS_ZERO),
        ("python3 /app/check.py", Kind.CODE),
        ("/opt/verify", Kind.CODE),
    ],
)
def test_kinds_of_commands(command, kind):
    assert kind_of(command.split()) is kind


def test_wrappers_are_taken_off():
    assert unwrapped(
        ["sudo", "-u", "nobody", "env", "A=1", "timeout", "-k", "5", "60s", "uv", "run", "pytest", "-q"]
    ) == ["pytest", "-q"]
