"""What a script runs: working directories, variables, nested shells, and what it has put in place itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.checks.verify_walk import UNKNOWN, WORKDIR, walk


def runs(text, made=False):
    done = walk(text)
    assert done is not None
    return [(run.how, run.path) for run in done.runs if run.made == made]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("python3 -u /app/x.py a b", [("runs", "/app/x.py")]),
        ("cd /app/src; ./x.sh", [("runs", "/app/src/x.sh")]),
        ("x.sh; ./x.sh", [("runs", "x.sh")]),
        ("cd /app && cd ../opt && bash x.sh", [("runs", "/opt/x.sh")]),
        ('cd "$D"; bash x.sh', []),
        ("D=${D:-/app}; bash $D/x.sh", [("runs", "/app/x.sh")]),
        ("for D in /a /b; do bash $D/x.sh; done", []),
        ("bash -lc 'cd /app; ./x.sh'; ./y.sh", [("runs", "/app/x.sh"), ("runs", "y.sh")]),
        ("su nobody -c 'bash /app/x.sh'", [("runs", "/app/x.sh")]),
        ("source ~/.cargo/env", [("sources", "$HOME/.cargo/env")]),
        ("python3 -c 'import x'; python3 -m x /app/y.py; python3 - /app/x.py <<EOF\nEOF", []),
        ("node --loader ts-node/esm /app/x.ts", [("runs", "/app/x.ts")]),
        ("timeout 60 pytest -q /tests/test_a.py::test_b --ctrf /logs/x.json", [("tests", "/tests/test_a.py")]),
        ("uvx --with pytest==8 pytest /tests/test_a.py", [("tests", "/tests/test_a.py")]),
        ("cd /app; python3 -m pytest -k 'a b'", [("tests", "/app")]),
        ("out=$(bash /app/x.sh)", [("runs", "/app/x.sh")]),
    ],
)
def test_what_is_run(text, expected):
    assert [(how, path) for how, path in runs(text) if path != WORKDIR or how == "tests"] == expected


@pytest.mark.parametrize(
    "text",
    [
        "cp /tests/x.sh /app/x.sh",
        "cp /tests/x.sh /app/",
        "rsync -a /tests/ /app/",
        "cd /app; cp /tests/x.sh x.sh",
        "echo true > /app/x.sh",
        "tee /app/x.sh < /tests/x.sh",
        "cd /app; tar -xf /tests/a.tar",
        "cd /app; git checkout abc -- x.sh",
        "git clone https://example.org/app.git /app",
        'cp /tests/x.sh "$WHERE"',
    ],
)
def test_what_the_script_put_there_is_its_own(text):
    assert runs(f"{text}\nbash /app/x.sh", made=True) == [("runs", "/app/x.sh")]


def test_a_place_that_was_written_later_is_not_its_own():
    assert runs("bash /app/x.sh\ncp /tests/x.sh /app/x.sh") == [("runs", "/app/x.sh")]


def test_an_unknown_working_directory_says_nothing():
    done = walk("./x.sh; bash /app/y.sh", UNKNOWN)
    assert done is not None
    assert [run.path for run in done.runs] == ["/app/y.sh"]


def test_many_runs_of_many_files_take_no_square_of_time():
    done = walk("".join(f"cp a /app/{n}\n./run{n}\n" for n in range(6000)))
    assert done is not None
    assert len(done.runs) == 6000


@given(st.text(alphabet="abc/.$~'\"();&|<>{} \n-=:\0", max_size=80))
def test_no_script_is_too_odd(text):
    for words in (text, f"bash -c '{text}'", f"cp {text} {text}; . {text}", f"eval {text}"):
        walk(words)
