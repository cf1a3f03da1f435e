"""Any text is planned or refused in one line; keys know the meaning of a Dockerfile alone."""

import os
import re
import shutil

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_otval.core import Conclusion
from pytest_otval.images.plan import MAX_STAGES, dockerfile_plan
from selftests.images.dockerfile_cases import CASES

VOCABULARY = """
    FROM ARG ENV RUN COPY ADD WORKDIR USER SHELL CMD ENTRYPOINT EXPOSE VOLUME LABEL HEALTHCHECK STOPSIGNAL ONBUILD AS
    MAINTAINER debian:12 one two 0 1 . / a.txt sub *.txt nomatch* <<E <<-E E ../x $A ${A} ${A:-x} ${B:?no} ${A#*} A=1 A
    B=$A --from=one --from=0 --from=9 --chown=1 --chmod=755 --chmod=u+x --platform=$X --mount=x --checksum=sha256:00
    https://h/x git@h:x 80 SIGINT NONE none scratch ' " \\ ["x"] [ {} # \x01 é %s"""
WORDS = st.sampled_from(VOCABULARY.split())
LINES = st.lists(WORDS, max_size=7).map(" ".join)
TEXTS = st.lists(LINES, max_size=8).map("\n".join)
ANY = settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def folder(environment):
    return environment("FROM debian:12\n", {"a.txt": "a", "sub/b": "b"})


def planned(folder, text, bases):
    (folder / "Dockerfile").write_text(text, encoding="utf-8")
    try:
        return dockerfile_plan(folder, bases, all_root=False)
    except Conclusion as conclusion:
        assert conclusion.reason in ("build-failed", "unsupported-instruction", "base-unavailable")
        assert "\n" not in conclusion.headline
        return None


@ANY
@given(text=TEXTS)
def test_instructions_in_any_order(folder, bases, text):
    planned(folder, "FROM debian:12 AS one\n" + text, bases)
    planned(folder, text, bases)


@ANY
@given(text=st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text(folder, bases, text):
    planned(folder, text, bases)
    planned(folder, f"FROM debian:12\nENV A={text}\nCOPY {text} /\n", bases)


@pytest.mark.parametrize(
    "text",
    [
        "FROM debian:12 AS s0\n" + "".join(f"FROM s{n} AS s{n + 1}\n" for n in range(3000)),
        "FROM debian:12\n" + "".join(f"FROM debian:12\nCOPY --from={n} / /\n" for n in range(3000)),
        "FROM debian:12\n" + "ENV A=$A$A$A$Ax\n" * 100,
        "FROM debian:12\nENV A=" + "${A:-" * 2000 + "}" * 2000 + "\n",
        "FROM debian:12\nCOPY " + "*a" * 200 + "b /\n",
        "FROM debian:12\nCOPY " + "a.txt " * 20000 + "/\n",
        "FROM debian:12\nRUN " + "x" * 900_000 + "\n",
        "FROM debian:12\nWORKDIR " + "a/" * 100_000 + "\n",
    ],
    ids=["stages", "copies", "growing", "nested", "stars", "sources", "long", "deep"],
)
def test_hostile_texts_end(folder, bases, text):
    (folder / ("a" * 200)).write_text("")
    planned(folder, text, bases)


def test_stages_are_limited(folder, bases):
    assert planned(folder, "FROM debian:12\n" * MAX_STAGES, bases)
    with pytest.raises(Conclusion, match=f"Dockerfile:{MAX_STAGES + 1}: more than"):
        (folder / "Dockerfile").write_text("FROM debian:12\n" * (MAX_STAGES + 1))
        dockerfile_plan(folder, bases, all_root=False)


COPIES_ITSELF = re.compile(r"COPY (--\S+ )?[.*] ")
PLANNED = [
    case
    for case in CASES
    if case.refused is None
    and "tools:1" not in case.lines
    and not case.unpacked
    and not COPIES_ITSELF.search(case.lines)
]


def spelled_otherwise(text):
    """The same instructions on other lines, between comments; here-documents and directives stay as they are."""
    if "<<" in text or re.search(r"^#", text, re.MULTILINE) or "\\\n" in text:
        return text + "\n# at the end\n"
    return "\n# note\n\n" + "".join(f"  {line}\n# another\n\n" for line in text.splitlines())


@pytest.mark.parametrize("case", PLANNED, ids=[case.name.replace(" ", "-") for case in PLANNED])
def test_keys_know_no_path_time_line_or_comment(environment, bases, case, tmp_path):
    text = case.lines if re.search(r"^from ", case.lines, re.MULTILINE | re.I) else "FROM debian:12\n" + case.lines
    folder = environment(text)
    for name, content in {"t.tgz": b"x", **case.files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str) and content.startswith("-> "):
            path.symlink_to(content[3:])
        else:
            path.write_bytes(content.encode() if isinstance(content, str) else content)
    here = dockerfile_plan(folder, bases, all_root=False)
    there = tmp_path / "other" / "place"
    shutil.copytree(folder, there, symlinks=True)
    (there / "Dockerfile").write_text(spelled_otherwise(text))
    for path in there.rglob("*"):
        os.utime(path, (4_000_000_000, 4_000_000_000), follow_symlinks=False)
    assert dockerfile_plan(there, bases, all_root=False).key == here.key
