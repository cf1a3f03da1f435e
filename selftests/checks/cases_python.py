"""Faults and near misses of Python tests."""

from __future__ import annotations

from pytest_otval.core import Severity
from selftests.checks.test_check_cases import BY_STATUS, Fault, script

W, INFO = Severity.WARNING, Severity.INFO
TESTS = "tests/test_outputs.py"
ALL = script("pytest /tests", BY_STATUS)


def tests(*lines: str, imports: str = "import os, time, pytest, random, socket\n\n\n") -> dict[str, object]:
    """A test file whose lines start at line 4."""
    return {TESTS: imports + "".join(f"{line}\n" for line in lines)}


def image(base: str, *lines: str) -> dict[str, object]:
    return {"environment/Dockerfile": f"FROM {base}\nWORKDIR /app\n" + "".join(f"{line}\n" for line in lines)}


def ids(text: str, name: str = "config.json") -> dict[str, object]:
    return {f"tests/{name}": text}


OPEN = '    text = open("/app/answer.txt").read()'
MATCH = ("def test_it():", "    match 1:", "        case 1:", "            assert os.getcwd()")

FAULTS = [
    Fault("python-version", tests(*MATCH) | image("python:3.9-slim"), TESTS, 5, says="3.9"),
    Fault("python-version", tests("import tomllib") | image("docker.io/library/python:3.10"), TESTS, 4, says="tomllib"),
    Fault("python-version", tests("import imp") | image("ubuntu:24.04"), TESTS, 4, says="no module imp"),
    Fault("python-fixture", tests("def test_it(client):", "    assert client"), TESTS, 4, W, "client"),
    Fault(
        "python-fixture",
        tests("class TestIt:", "    def test_it(self, tmp_path, mocker):", "        assert mocker"),
        TESTS,
        5,
        W,
        "mocker",
    ),
    Fault("python-no-assertion", tests("def test_it():", OPEN, "    print(text)"), TESTS, 4, W, "asserts nothing"),
    Fault("python-no-assertion", tests("def test_it():", OPEN, "    return text == '42'"), TESTS, 4, W, "returns"),
    Fault("python-always-true", tests("def test_it():", OPEN, "    assert (text == '42', 'wrong')"), TESTS, 6),
    Fault("python-always-true", tests("def test_it():", OPEN, "    assert text == '42' or '43'"), TESTS, 6),
    Fault("python-always-true", tests("def test_it():", OPEN, "    assert text == '42' or True"), TESTS, 6, W),
    Fault("python-always-true", tests("def test_it():", OPEN, "    assert len(text) >= 0"), TESTS, 6, W),
    Fault(
        "python-swallowed",
        tests(
            "def test_it():", "    try:", "    " + OPEN, "        assert text", "    except Exception:", "        pass"
        ),
        TESTS,
        7,
        W,
    ),
    Fault(
        "python-existence-only",
        tests("def test_it():", '    assert os.path.exists("/app/answer.txt"), "missing"'),
        TESTS,
        4,
        W,
    ),
    Fault("python-xfail", tests("@pytest.mark.xfail(reason='later')", "def test_it():", "    assert 0"), TESTS, 4, W),
    Fault("python-xfail", tests("pytestmark = [pytest.mark.xfail]", "def test_it():", "    assert 0"), TESTS, 4, W),
    Fault(
        "python-skip",
        tests("def test_it():", "    if not os.path.exists('/app/a'):", "        pytest.skip('none')", "    assert 0"),
        TESTS,
        6,
        W,
        "skipped if not os.path.exists('/app/a')",
    ),
    Fault("python-skip", tests("answer = pytest.importorskip('answer')"), TESTS, 4, W),
    Fault(
        "python-skip",
        tests("@pytest.mark.skipif(not os.path.exists('/app'), reason='')", "def test_it():", "    assert 0"),
        TESTS,
        4,
        W,
    ),
    Fault(
        "python-empty-parametrize",
        tests("CASES = []", "@pytest.mark.parametrize('a', CASES)", "def test_it(a):", "    assert a"),
        TESTS,
        5,
    ),
    Fault(
        "python-empty-parametrize",
        tests(
            "class TestIt:", "    @pytest.mark.parametrize('a', [])", "    def test_it(self, a):", "        assert a"
        ),
        TESTS,
        5,
    ),
    Fault("python-cut-id", ids('{"PASS":\n["a.py::test_a[x"]}'), "tests/config.json", 2, W, "test_a[x"),
    Fault("python-cut-id", ids('{"PASS": "[\\"a.py::test_a[x\\"]"}'), "tests/config.json", 1, W),
    Fault("python-cut-id", ids("a.py::test_b\na.py::TestA::test_a[x\n", "ids.txt"), "tests/ids.txt", 2, W),
    Fault(
        "python-clock",
        tests("def test_it():", "    t0 = time.time()", OPEN, "    took = time.time() - t0", "    assert took < 0.5"),
        TESTS,
        8,
        W,
        "less than 0.5 s",
    ),
    Fault(
        "python-clock",
        tests("def test_it():", "    t0 = time.perf_counter()", "    assert (time.perf_counter() - t0) * 1000 < 9000"),
        TESTS,
        6,
        INFO,
        "less than 9 s",
    ),
    Fault(
        "python-clock",
        tests("from datetime import date", "def test_it():", "    assert date.today().year == 2025"),
        TESTS,
        6,
        W,
        "current time",
    ),
    Fault("python-machine", tests("def test_it():", "    assert socket.gethostname() == 'box'"), TESTS, 5, W),
    Fault("python-machine", tests("def test_it():", "    me = os.getuid()", "    assert me == 0"), TESTS, 6, W),
    Fault("python-random", tests("def test_it():", "    assert random.random() < 0.99"), TESTS, 5, INFO),
]

NEAR_MISSES = [
    ("python-version", tests(*MATCH) | image("python:3.10-slim")),
    ("python-version", tests(*MATCH) | image("python:3.9-slim", "RUN apt-get install -y python3.12")),
    (
        "python-version",
        tests("try:", "    import tomllib", "except ImportError:", "    tomllib = None") | image("python:3.10"),
    ),
    ("python-version", tests("import tomllib") | image("some/python-tools:3.10")),
    ("python-fixture", tests("def test_it(tmp_path, capsys, monkeypatch, request):", "    assert tmp_path")),
    (
        "python-fixture",
        tests("@pytest.fixture", "def client():", "    return 1", "def test_it(client):", "    assert client"),
    ),
    (
        "python-fixture",
        tests("def test_it(client):", "    assert client") | {"tests/conftest.py": "from lib import *\n"},
    ),
    (
        "python-fixture",
        tests("def test_it(client):", "    assert client")
        | {"tests/conftest.py": "import pytest\n@pytest.fixture(name='client')\ndef make():\n    return 1\n"},
    ),
    (
        "python-fixture",
        tests("def test_it(mocker):", "    assert mocker") | image("debian", "RUN pip install pytest-mock"),
    ),
    ("python-fixture", tests("def test_it(page):", "    assert page") | image("debian", "RUN pip install pytest-x")),
    (
        "python-fixture",
        tests("@pytest.mark.parametrize('a, b', [(1, 1)])", "def test_it(a, b, c=1):", "    assert a == b"),
    ),
    ("python-fixture", tests("@mock.patch('os.getcwd')", "def test_it(getcwd):", "    assert getcwd")),
    ("python-no-assertion", tests("def look(text):", "    assert text", "def test_it():", OPEN, "    look(text)")),
    ("python-no-assertion", tests("import numpy as np", "def test_it():", "    np.testing.assert_allclose(1, 1)")),
    ("python-no-assertion", tests("def test_it():", "    with pytest.raises(OSError):", "        open('/app/x')")),
    (
        "python-no-assertion",
        tests("import subprocess", "def test_it():", "    subprocess.run(['/app/x'], check=True)"),
    ),
    (
        "python-no-assertion",
        tests("from helper import solved", "def test_it():", "    solved()")
        | {"tests/helper.py": "def solved(): ...\n"},
    ),
    ("python-always-true", tests("def test_it():", OPEN, "    assert (text == '42'), 'wrong'", "    assert True")),
    (
        "python-always-true",
        tests("def test_it():", OPEN, "    assert text in ('42', '43') or not text and len(text) > 0"),
    ),
    (
        "python-swallowed",
        tests(
            "def test_it():", "    try:", "    " + OPEN, "        assert text", "    except OSError:", "        pass"
        ),
    ),
    (
        "python-swallowed",
        tests(
            "def test_it():",
            "    for _ in range(9):",
            "        try:",
            "            assert os.path.exists('/app/up')",
            "            return",
            "        except AssertionError:",
            "            pass",
            "    pytest.fail('never up')",
        ),
    ),
    (
        "python-swallowed",
        tests(
            "def test_it():",
            "    try:",
            "        assert os.path.exists('/app/up')",
            "    except Exception as error:",
            "        pytest.fail(str(error))",
        ),
    ),
    (
        "python-existence-only",
        tests("def test_it():", "    assert os.path.exists('/app/a')", "def test_text():", OPEN, "    assert text"),
    ),
    ("python-xfail", tests("@pytest.mark.xfail(strict=True)", "def test_it():", "    assert 0")),
    (
        "python-xfail",
        tests("@pytest.mark.xfail", "def test_it():", "    assert 0")
        | {"tests/pytest.ini": "[pytest]\nxfail_strict=1\n"},
    ),
    ("python-skip", tests("@pytest.mark.skipif(os.name == 'nt', reason='')", "def test_it():", "    assert 0")),
    (
        "python-skip",
        tests("def test_it():", "    if not os.path.exists('/app/a'):", "        pytest.skip('none')", "    assert 0")
        | script("pytest /tests | tee /tmp/log", "grep -q skipped /tmp/log && exit 1", BY_STATUS),
    ),
    (
        "python-empty-parametrize",
        tests("C = []", "C.append(1)", "@pytest.mark.parametrize('a', C)", "def test_it(a):", "    assert a"),
    ),
    ("python-empty-parametrize", tests("@pytest.mark.parametrize('a', [()])", "def test_it(a):", "    assert not a")),
    ("python-cut-id", ids('["a.py::test_a[x y]", "a.py::test_b[[]", "b.py::test", "t[1"]')),
    ("python-cut-id", ids("a.py::test_a[x] PASSED\npytest a.py::test_b\n", "ids.txt")),
    (
        "python-clock",
        tests("def test_it():", "    t0 = time.time()", "    took = time.time() - t0", "    assert took > 0.5"),
    ),
    ("python-clock", tests("def test_it():", "    seconds = len('abc')", "    assert seconds < 4 and time.time() > 0")),
    ("python-machine", tests("def test_it():", OPEN, "    assert text == socket.gethostname()")),
    ("python-random", tests("random.seed(1)", "def test_it():", "    assert random.random() < 0.99")),
    ("python-random", tests("def test_it():", "    assert random.Random(1).random() < 0.99")),
]
