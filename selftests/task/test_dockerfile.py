"""Dockerfiles as instructions."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.task.dockerfile import MAX_BYTES, DockerfileError, parse_dockerfile


def kinds(text):
    return [instruction.kind for instruction in parse_dockerfile(text)]


def test_lines_and_continuations():
    parsed = parse_dockerfile('FROM a\n\n# c\nRUN x \\\n # c\n  && y\nCMD ["a", "b c"]\n').instructions
    assert [(i.kind, i.line, i.end_line, i.args, i.shell_form) for i in parsed] == [
        ("FROM", 1, 1, ("a",), True),
        ("RUN", 4, 6, ("x   && y",), True),
        ("CMD", 7, 7, ("a", "b c"), False),
    ]


def test_kind_is_upper_case():
    assert kinds("from a\nrun x") == ["FROM", "RUN"]


def test_pairs_of_env():
    env = parse_dockerfile('FROM a\nENV a=b c="d e"\nENV old some words').instructions[1:]
    assert [instruction.pairs for instruction in env] == [(("a", "b"), ("c", '"d e"')), (("old", "some words"),)]


def test_heredocs():
    copy = parse_dockerfile("FROM a\nCOPY <<'A' <<-B /d/\n$x\nA\n\tb $x\nB\n").instructions[1]
    assert [(h.name, h.content, h.expand) for h in copy.heredocs] == [("A", "$x\n", False), ("B", "b $x\n", True)]


def test_blanks_in_front_of_the_name_of_a_heredoc():
    first, second = "RUN python3 <<  'PY' && \\\n  true\nfrom os import path\nPY", "COPY << A <<- B /d/\n1\nA\n\t2\n\tB"
    _, run, copy, user = parse_dockerfile(f"FROM a\n{first}\n{second}\nUSER u")
    assert [(h.name, h.content, h.expand) for h in run.heredocs] == [("PY", "from os import path\n", False)]
    assert [(h.name, h.content, h.expand) for h in copy.heredocs] == [("A", "1\n", True), ("B", "2\n", True)]
    assert (run.line, run.end_line, copy.line, user.line) == (2, 5, 6, 11)


@pytest.mark.parametrize("command", ["echo 'a << b'", "echo $((1 << 2))", "echo '\\nx <<- b'"])
def test_what_looks_like_a_heredoc_stays_as_it_is(command):
    _, run, after = parse_dockerfile(f"FROM a\nRUN {command}\nRUN cat <<b\nx << y\nb")
    assert (run.args, run.heredocs) == ((command,), ())
    assert [h.content for h in after.heredocs] == ["x << y\n"]


def test_onbuild_names_what_it_defers():
    assert parse_dockerfile("FROM a\nONBUILD COPY a b").instructions[1].inner == "COPY"


@pytest.mark.parametrize(("text", "escape"), [("# escape=`\nFROM a", "`"), ("# x\n# escape=`\nFROM a", "\\")])
def test_escape_directive(text, escape):
    assert parse_dockerfile(text).escape == escape


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", 1, "no instructions"),
        ("ARG x=1", 1, "no FROM"),
        ("\n\nRUN x\nFROM a", 3, "before the first FROM"),
        ("FROM a\nFOO b", 2, "unknown instruction: FOO"),
        ("FROM a b c", 1, "FROM takes"),
        ("FROM a\nCOPY a", 2, "source and a destination"),
        ("FROM a\nRUN x\n\nENV a\nRUN y\n", 4, "ENV must have"),
        ("FROM a\nRUN <<A\nx\nA\nRUN <<EOF\nx\n", 5, "unterminated heredoc"),
        ("FROM a\nRUN", 2, "without an argument"),
        ("FROM a\nSHELL x", 2, "JSON list"),
        ("FROM a\nRUN x\0y", 2, "NUL"),
    ],
)
def test_refused(text, line, words):
    with pytest.raises(DockerfileError) as caught:
        parse_dockerfile(text)
    assert caught.value.line == line
    assert words in caught.value.message


def test_files_that_are_no_dockerfile(tmp_path):
    good = tmp_path / "good"
    good.write_bytes(b"\xef\xbb\xbfFROM a\r\nRUN x\r\n")
    assert [i.args for i in parse_dockerfile(good)] == [("a",), ("x",)]
    (tmp_path / "link").symlink_to(good)
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "latin").write_bytes(b"FROM a\nRUN \xe9")
    (tmp_path / "huge").write_bytes(b"#" * (MAX_BYTES + 1))
    words = {
        "link": "a link",
        "fifo": "FIFO",
        "latin": "UTF-8",
        "huge": "larger",
        "none": "no such",
        ".": "folder",
    }
    for name, word in words.items():
        with pytest.raises(DockerfileError, match=word):
            parse_dockerfile(tmp_path / name)


@given(st.text(alphabet=st.sampled_from("FROM a\nRUN\\<<E'\"[],=#ENVCOPY\0é")))
def test_any_text_is_parsed_or_refused(text):
    try:
        parsed = parse_dockerfile("FROM a\n" + text)
    except DockerfileError as error:
        assert error.line >= 1
        assert "\n" not in error.message
    else:
        assert parsed.instructions[0].kind == "FROM"
