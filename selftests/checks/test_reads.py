"""Which files Python tests surely read, and which names they take from where."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.checks.imports import taken_names
from pytest_otval.checks.reads import required_paths, uses_of_paths


def reads(*lines: str) -> dict[str, int]:
    uses = uses_of_paths("\n".join(lines))
    return {path: line for path, line in uses.reads.items() if path not in uses.perhaps}


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("open('/app/a.txt').read()", "/app/a.txt"),
        ("open('/app/a.txt', 'rb')", "/app/a.txt"),
        ("open('/app/a.txt', mode='r')", "/app/a.txt"),
        ("pd.read_csv(Path('/app') / 'sub' / 'a.csv')", "/app/sub/a.csv"),
        ("os.path.join('/app', 'a.txt'); os.path.getsize(os.path.join('/app', 'a.txt'))", "/app/a.txt"),
        ("assert Path('/app/a.txt').is_file() and x", "/app/a.txt"),
        ("assert os.path.exists('/app/a.txt'), 'missing'", "/app/a.txt"),
        ("A = '/app/a.txt'; json.load(open(A))", "/app/a.txt"),
        ("A = Path('/app'); B = A / 'b.txt'; B.read_text()", "/app/b.txt"),
    ],
)
def test_sure_reads(line, path):
    assert path in reads(line) or path in reads(*line.split("; "))


@pytest.mark.parametrize(
    "line",
    [
        "open('/app/a.txt', 'w')",
        "open('/app/a.txt', mode)",
        "assert not Path('/app/a.txt').exists()",
        "assert Path('/app/a.txt').exists() or x",
        "run(['x', '/app/a.txt'])",
        "for A in ('/app/a.txt', '/app/b.txt'): open(A)",
        "A = '/app/a.txt'; A = x; open(A)",
        "def f(A='/app/a.txt'): open(A)",
        "if x: open('/app/a.txt')",
        "with pytest.raises(OSError): open('/app/a.txt')",
        "with contextlib.suppress(OSError): open('/app/a.txt')",
        "print('/app/a.txt')",
        "open(f'/app/{x}.txt')",
        "open('a.txt')",
        "open('/app/*.txt')",
    ],
)
def test_what_is_no_sure_read(line):
    assert "/app/a.txt" not in reads(line)


def test_a_folder_handed_on_may_be_filled():
    text = "out = '/app/out'\nrun(out)\nopen('/app/out/a.txt')\nopen('/app/b.txt')\n"
    assert required_paths({"tests/test_a.py": text}, ["a.txt", "b.txt"]) == {"/app/b.txt": ("tests/test_a.py", 4)}


def test_another_file_that_mentions_a_name_may_make_the_file():
    texts = {"tests/test_a.py": "open('/app/a.txt')\n", "tests/test.sh": "make a.txt\n"}
    assert required_paths(texts, ["a.txt"]) == {}


def test_a_program_in_a_shell_script_has_the_lines_of_the_script():
    script = "#!/bin/bash\necho\npython3 - <<'PY'\nimport json\njson.load(open('/app/a.json'))\nPY\n"
    assert required_paths({"tests/test.sh": script}, ["a.json"]) == {"/app/a.json": ("tests/test.sh", 5)}


def test_names_by_every_way_of_import():
    text = "from calc import add\nimport calc as c\nc.sub(1)\nc.new = 1\nhasattr(c, 'mul')\nc.mul\n"
    assert [(taken.module, taken.name) for taken in taken_names(text)] == [("calc", "add"), ("calc", "sub")]


PIECES = st.sampled_from(
    ["open(", "'/app/a.txt'", ")",
     "\n", " / ", "'b.txt'", "Path(", "A", " = ", "assert ", "if ", ":", "try:\n ", "import A",
     "with ", "f'{A}'", ".read_text()", ".exists()", "not ", "[", "]", ", ", "lambda: ", "\\", "\0"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=25).map("".join))
def test_no_text_crashes(text):
    uses_of_paths(text)
    list(taken_names(text))
    required_paths({"tests/test_a.py": text, "tests/test.sh": text}, ["a.txt", "b.txt"])
