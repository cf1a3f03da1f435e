"""Which files of a task the agent's image ends up with, and what a RUN is made of."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_otval.checks.compose import scalars
from pytest_otval.checks.context import CheckContext
from pytest_otval.checks.docker_files import copied, delivered, names_answer
from pytest_otval.checks.docker_view import expand, images
from pytest_otval.checks.secrets import entropy, find_secret
from pytest_otval.task.load import load_task
from selftests.checks.conftest import write_task


@pytest.fixture
def context(tmp_path):
    def make(dockerfile, **files):
        edits = {"environment/Dockerfile": dockerfile} | {f"environment/{name}": "x" for name in files.get("files", ())}
        write_task(tmp_path / "task", edits)
        return CheckContext(load_task(tmp_path / "task", "data"))

    return make


@pytest.mark.parametrize(
    ("instructions", "place"),
    [
        ("COPY a /x", "/x"),
        ("COPY a /x/", "/x/a"),
        ("COPY a /tmp", "/tmp/a"),
        ("WORKDIR /w\nCOPY a .", "/w/a"),
        ("WORKDIR /w\nCOPY a /w", "/w/a"),
        ("WORKDIR /w\nCOPY a b", "/w/b"),
        ("RUN mkdir -p /d/e\nCOPY a /d/e", "/d/e/a"),
        ("COPY d/ /x", "/x/b"),
        ("COPY d /x/y/", "/x/y/b"),
        ("COPY a* /x", "/x/a"),
        ('COPY ["a", "/x y"]', "/x y"),
        ("ARG D\nCOPY a $D/a", "\0"),
    ],
)
def test_where_a_copy_lies(context, instructions, place):
    assert place in {one.place for one in delivered(context(f"FROM debian:12\n{instructions}\n", files=["a", "d/b"]))}


@pytest.mark.parametrize(
    ("removal", "gone"),
    [
        ("rm /w/a", True),
        ("rm -rf /w", True),
        ("cd /w && rm a", True),
        ("true && \\\n  (cd /w; rm -f ./a)", True),
        ("rm -f /w/*", True),
        ("cd $X && rm a", True),
        ("find /w -name a -delete", True),
        ("rm /w/ab", False),
        ("rm /v/a", False),
        ("(cd /w); rm a", False),
        ("echo rm /w/a", False),
        ("find /w -name a", False),
    ],
)
def test_what_a_run_removes(context, removal, gone):
    found = copied(context(f"FROM debian:12\nCOPY a /w/a\nRUN {removal}\n", files=["a"]))
    assert [one.removed for one in found] == [gone]


def test_what_is_copied_after_a_removal_stays(context):
    assert len(list(delivered(context("FROM x:1\nRUN rm -rf /w\nCOPY a /w/a\n", files=["a"])))) == 1


def test_a_stage_that_nothing_stands_on_brings_no_files(context):
    text = "FROM x:1 AS one\nCOPY a /\nFROM x:1 AS two\nCOPY b /\nFROM two\n"
    assert [one.path for one in delivered(context(text, files=["a", "b"]))] == ["environment/b"]


def test_stages_that_a_build_runs(context):
    text = "FROM x AS a\nFROM a AS b\nFROM x AS c\nFROM x AS d\nFROM b\nCOPY --from=c /x /x\n"
    (image,) = images(context(text))
    assert image.needed == {0, 1, 2, 4}
    assert image.chain == (0, 1, 4)


@pytest.mark.parametrize("text", ["FROM x:1\n" * 101, "FROM x:1\n" + "RUN a\n" * 1000])
def test_a_dockerfile_without_end_is_not_looked_into(context, text):
    assert images(context(text)) == ()


def test_the_working_directory_goes_on_in_a_stage_above(context):
    (image,) = images(
        context("FROM debian:12 AS a\nWORKDIR /w\nFROM a\nRUN x\nFROM other:1\nRUN y\nWORKDIR /v\nRUN z\n")
    )
    assert [(one.name, one.folder) for one in image.commands] == [("x", "/w"), ("y", "\0"), ("z", "/v")]


def test_commands_have_lines_folders_and_what_their_failure_does(context):
    text = "FROM x:1\nWORKDIR /w\nRUN a && \\\n  # why\n  cd b && \\\n\n  sudo -E c d || true\nRUN if x; then y; fi\n"
    (image,) = images(context(text))
    assert [(one.name, one.line, one.folder, one.ignored, one.certain) for one in image.commands] == [
        ("a", 3, "/w", True, True),
        ("cd", 5, "/w", True, True),
        ("c", 7, "/w/b", True, True),
        ("true", 7, "/w/b", False, False),
        ("x", 8, "/w", False, False),
        ("y", 8, "/w", False, False),
    ]


def test_a_here_document_is_a_script(context):
    (image,) = images(context("FROM debian:12\nRUN <<EOF\nset -e\ncd /a\nb\nEOF\nRUN cat <<EOF > /x\nrm y\nEOF\n"))
    assert [(one.name, one.line, one.folder) for one in image.commands] == [
        ("set", 3, "/"),
        ("cd", 4, "/"),
        ("b", 5, "/a"),
        ("cat", 7, "/"),
    ]


@pytest.mark.parametrize(
    ("text", "value"),
    [("a:$V", "a:1"), ("${V}", "1"), ("${W:-2}", "2"), ("${W}", "\0"), ('"$V"', "1"), ("${V%x}", "\0")],
)
def test_arguments_are_filled_in(text, value):
    assert expand(text, {"V": "1"}) == value


@pytest.mark.parametrize(
    "name", ["expected_output.json", "a/GroundTruth.csv", "answer.txt", "my.golden", "hidden_x.py"]
)
def test_names_of_answers(name):
    assert names_answer(name)


@pytest.mark.parametrize(
    "name",
    ["solution.md", "unexpected.txt", "golden_retriever/data.csv", "answering.py", "goldfish", "check_answer.py"],
)
def test_names_of_other_things(name):
    assert not names_answer(name)


def test_scalars_of_a_yaml_text():
    text = "a:\n  - b: 1\n    c: [x, {d: y}]\n  - &z q\n  - *z\n'e': null\n"
    assert [(".".join(one.path), one.value, one.line) for one in scalars(text)] == [
        ("a.[].b", "1", 2),
        ("a.[].c.[]", "x", 3),
        ("a.[].c.[].d", "y", 3),
        ("a.[]", "q", 4),
        ("a.[]", "", 5),
        ("e", "null", 6),
    ]


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "a: &a [*a, *a]\n" * 99, "{" * 5000, "a: b: c", "\x00", "? [a]\n: b\n"]
)
def test_hostile_yaml_is_no_trouble(text):
    list(scalars(text))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.text())
def test_any_text_as_yaml_or_as_a_place_of_keys(text):
    list(scalars(text))
    find_secret(text.encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (b"AKIA" + b"QW3ERTY5UIOP2ASD", "a key of AWS"),
        (b"hf_" + b"kRvQmXtLbWzNcJfHdYsGpAuEoMiqwBnVxZ", "a token of Hugging Face"),
        (b"AKIAIOSFODNN7EXAMPLE", None),
        (b"ghp_" + b"a" * 36, None),
        (b"hf_" + b"x" * 34, None),
        (b"AKIA of Norway", None),
    ],
)
def test_keys_and_what_only_looks_like_them(text, kind):
    found = find_secret(b"x = '" + text + b"'\n")
    assert (found and found[0]) == kind


def test_entropy():
    assert entropy(b"aaaa") == 0
    assert entropy(b"abcd") == 2
