"""Which line of a task's scripts asked the network; scripts are hostile."""

import os

import pytest

from pytest_otval.stages.hermetic_places import place_of
from selftests.fakes import make_task


@pytest.fixture
def place(tmp_path):
    def find(phase="verifier", names=(), solve="true", test="true", **files):
        files = {
            name.replace("__", "/").replace("_py", ".py").replace("_sh", ".sh"): text for name, text in files.items()
        }
        return place_of(make_task(tmp_path, solve, test, files=files), phase, list(names))

    return find


@pytest.mark.parametrize(
    ("script", "line"),
    [
        ("# pypi.org is asked\ncurl -s \\\n  https://PyPI.org/simple", 3),
        ("echo mypypi.org pypi.organic\ngetent hosts pypi.org.", 3),
        ("python3 - <<'EOF'\nimport urllib\nurlopen('https://pypi.org')\nEOF", 2),
        ("if true; then x=$(wget -qO- pypi.org); fi", 2),
        ("pip install x", 2),
        ("echo 'pip install x'\n# pip install y\nuv pip install z", 4),
        ('curl -fsS "$MIRROR/x"', 2),
        ("curl http://localhost:8080/", None),
        ("apt-get -q update && apt-get install -y x", 2),
        ("git clone ../here there", None),
        ("echo curl wget npx", None),
        ("if (", None),
    ],
)
def test_of_a_shell_script(place, script, line):
    path = "solution/solve.sh"
    assert place("agent", ["pypi.org"], solve=script) == (path, line)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('"""Asks pypi.org."""\n# pypi.org\nX = "https://pypi.org/simple"\n', 3),
        ('def f():\n    """pypi.org"""\n    return f"https://pypi.org/{f}"\n', 3),
        ('import requests\nrequests.get("https://example.com")\n', 2),
        (
            'import subprocess\nsubprocess.run(["pip", "install", "x"])\nsubprocess.run("pip install y", shell=True)\n',
            2,
        ),
        ("not python (", None),
        ("x = " + "(" * 500 + ")" * 500, None),
        ("x = " + "-" * 20_000 + "1", None),
    ],
)
def test_of_a_python_file(place, text, line):
    found = place("verifier", ["pypi.org"], tests__test_it_py=text)
    assert found == (("tests/test_it.py", line) if line else ("tests/test.sh", None))


def test_the_first_name_that_any_line_speaks_of(place):
    script = "wget https://a.example.org/x\nwget https://b.example.org/y"
    assert place("agent", ["none.example.org", "b.example.org", "a.example.org"], solve=script)[1] == 3


def test_shell_comes_first(place):
    files = {"tests__a_test_py": 'X = "https://pypi.org"\n', "tests__z_sh": "true\nwget https://pypi.org\n"}
    assert place(names=["pypi.org"], **files) == ("tests/z.sh", 2)


def test_what_is_no_file_or_too_large(place, tmp_path):
    place()
    tests = tmp_path / "set" / "tasks" / "task" / "tests"
    os.mkfifo(tests / "a.sh")
    (tests / "b.sh").symlink_to("/etc/passwd")
    (tests / "c.sh").write_text("wget https://pypi.org\n" + "#" * (1 << 20))
    (tests / "d.py").mkdir()
    assert place(names=["pypi.org"]) == ("tests/test.sh", None)
    (tests / "e.sh").write_text("wget https://pypi.org\n")
    assert place(names=["pypi.org"]) == ("tests/e.sh", 1)
