"""What becomes of test scripts."""

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.checks.context import CheckContext
from pytest_otval.harden.facts import Facts
from pytest_otval.harden.script import NotUnderstoodError, hardened
from selftests.fakes import make_task

PLAIN = "FROM debian:bookworm\n"
RUN = '"${OT_PYTHON:-python3}" -I -m pytest'
OWN = "-c /dev/null --rootdir=/tests"


@pytest.fixture
def harden(tmp_path):
    def run(script, tests="", given="runtime", **files):
        files = {"tests/test_x.py": tests, "environment/Dockerfile": PLAIN, **files}
        facts = facts_of(tmp_path, files)
        found = hardened(f"#!/bin/bash\n{script}\n".encode("utf-8", "surrogateescape"), facts, given)
        if found is None:
            return None
        again = hardened(found.content, facts, given)
        assert again is None or again.content == found.content, "a second time there is nothing to do"
        run.notes, run.needs_runtime = found.notes, found.needs_runtime
        return found.content.decode("utf-8", "surrogateescape").removeprefix("#!/bin/bash\n").removesuffix("\n")

    return run


def facts_of(tmp_path, files):
    task = make_task(tmp_path, files=files)
    return Facts(CheckContext(task), task.steps[0])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("pytest /tests/test_x.py -rA", f"{RUN} {OWN} /tests/test_x.py -rA"),
        ("timeout 60 pytest /tests/test_x.py", f"timeout 60 {RUN} {OWN} /tests/test_x.py"),
        ("python3 -m pytest /tests", f"{RUN} {OWN} /tests"),
        ("python -m pytest /tests", f'"${{OT_PYTHON:-python}}" -I -m pytest {OWN} /tests'),
        ("cd /tests\npytest test_x.py", f"cd /tests\n{RUN} {OWN} test_x.py"),
        ('D=/tests\npytest "$D/test_x.py"', f'D=/tests\n{RUN} {OWN} "$D/test_x.py"'),
        ("if ! pytest /tests; then x=0; fi", f"if ! {RUN} {OWN} /tests; then x=0; fi"),
        ("f() { pytest /tests | tee log; }; f", f"f() {{ {RUN} {OWN} /tests | tee log; }}; f"),
        ("x=$(pytest /tests)", f"x=$({RUN} {OWN} /tests)"),
        ("A=1 pytest /tests > log 2>&1", f"A=1 {RUN} {OWN} /tests > log 2>&1"),
        ("pytest -c x.ini /tests", f"{RUN} -c x.ini /tests"),
        ("pytest \\\n  -rA \\\n  /tests", f"{RUN} {OWN} \\\n  -rA \\\n  /tests"),
        ("bash -lc 'pytest /tests'", f"bash -c '{RUN} {OWN} /tests'"),
        ("bash -l -c 'pytest /tests'", f"bash -c '{RUN} {OWN} /tests'"),
        ("bash \\\n  --login -c 'pytest /tests'", f"bash -c '{RUN} {OWN} /tests'"),
        ("bash -l \\\n\t-i -c 'pytest /tests'", f"bash -c '{RUN} {OWN} /tests'"),
        ("bash -eo pipefail -lc 'pytest /tests'", f"bash -eo pipefail -c '{RUN} {OWN} /tests'"),
        ("# pytest\npytest /tests # pytest", f"# pytest\n{RUN} {OWN} /tests # pytest"),
    ],
)
def test_pytest_runs_in_the_given_python(harden, before, after):
    assert harden(before) == after
    assert harden.needs_runtime


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("source /opt/venv/bin/activate", 'export VIRTUAL_ENV="/opt/venv" PATH="/opt/venv/bin:$PATH"'),
        ('. "$V/bin/activate"', 'export VIRTUAL_ENV="$V" PATH="$V/bin:$PATH"'),
        ("source .venv/bin/activate", 'export VIRTUAL_ENV="$PWD/.venv" PATH="$PWD/.venv/bin:$PATH"'),
        ("source ~/v/bin/activate", 'export VIRTUAL_ENV="$HOME/v" PATH="$HOME/v/bin:$PATH"'),
        (
            "source /opt/miniconda3/bin/activate t",
            'export CONDA_PREFIX="/opt/miniconda3/envs/t" PATH="/opt/miniconda3/envs/t/bin:$PATH"',
        ),
        (
            ". /opt/conda/etc/profile.d/conda.sh\nconda activate t",
            ':\nexport CONDA_PREFIX="/opt/conda/envs/t" PATH="/opt/conda/envs/t/bin:$PATH"',
        ),
    ],
)
def test_environments_are_entered_by_path_alone(harden, before, after):
    done = harden(f"{before} && true\npytest /tests")
    assert done.startswith(f"{after} && true\n")
    assert done.endswith(f'/bin/python3}}" -I -m pytest {OWN} /tests')


def test_what_the_tests_import_stays_importable(harden):
    """``python -m`` gave them the current folder, PYTHONPATH its folders; ``pytest`` alone gave neither."""
    product, ini = {"environment/mod.py": "VALUE = 1\n"}, {"tests/pytest.ini": "[pytest]\npythonpath = x\n"}
    assert harden("pytest /tests", "import mod", **product) == f"{RUN} {OWN} /tests"
    assert harden("python3 -m pytest /tests", "import mod", **product) == f'{RUN} -o pythonpath="$PWD" {OWN} /tests'
    path = "export PYTHONPATH=/app:/lib\npytest /tests"
    assert harden(path, "import mod", **product).endswith(f'{RUN} -o pythonpath="${{PYTHONPATH//:/ }}" {OWN} /tests')
    with pytest.raises(NotUnderstoodError, match="pythonpath is set"):
        harden("python3 -m pytest /tests", "import mod", **ini, **product)


def test_tests_that_are_the_agents_own_work_run_as_they_did(harden):
    """Nobody knows what they import, and in another Python than the agent's they may fail."""
    script = "cd /app\npython3 -m pytest tests/test_theirs.py"
    assert harden(script) == script
    assert "no file of tests/" in harden.notes[0]
    assert not harden.needs_runtime


def test_packages_are_those_of_the_python_that_has_them(harden):
    assert harden("pytest /tests", "import numpy") == f"{RUN} {OWN} /tests"
    assert not harden.needs_runtime
    assert "numpy" in harden.notes[0]
    done = harden(". /opt/v/bin/activate\npytest /tests", "from numpy import array")
    assert done.endswith(f'"/opt/v/bin/python3" -I -m pytest {OWN} /tests')
    product = {"environment/mod.py": "import numpy\n"}
    harden("pytest /tests", "import mod", **product)
    assert not harden.needs_runtime, "what the tests import imports it in their process"
    harden("pytest /tests", "import subprocess, json", **product)
    assert harden.needs_runtime
    harden("pytest /tests", "import subprocess, sys\nX = sys.executable", **product)
    assert not harden.needs_runtime
    harden("pytest -n 4 /tests")
    assert not harden.needs_runtime, "the plugin is the image's"


def test_by_uv_where_no_python_is_given(harden):
    script = (
        "apt-get update\napt-get install -y curl\ncurl -LsSf https://astral.sh/uv/0.9.7/install.sh | sh\n"
        "source $HOME/.local/bin/env\nuvx -w pytest==8.4.1 pytest --ctrf x.json /tests | tee log"
    )
    before, _, last = script.rpartition("\n")
    given = f'if [ -n "${{OT_PYTHON:-}}" ]; then "$OT_PYTHON" -I -m pytest {OWN} --ctrf x.json /tests; else'
    after = f'if [ -z "${{OT_PYTHON:-}}" ]; then\n{before}\nfi\n{given} {last.partition(" | ")[0]}; fi | tee log'
    assert harden(script) == after
    with pytest.raises(NotUnderstoodError, match="requests"):
        harden(script, "import requests")
    with pytest.raises(NotUnderstoodError, match="no runtime"):
        harden(script, given="image")


def test_where_nobody_knows_what_the_given_python_is(harden):
    """The task's runtime is another one: its Python may lack pytest, and so what fetches it stays, too."""
    script = "pip install pytest\n. /opt/v/bin/activate\npytest /tests"
    done = harden(script, given="unknown")
    assert done.startswith("pip install pytest\n")
    assert done.endswith(f'"/opt/v/bin/python3" -I -m pytest {OWN} /tests')
    assert harden("bash -c 'pytest /tests'", given="unknown") == f"bash -c '\"python3\" -I -m pytest {OWN} /tests'"
    assert not harden.needs_runtime


@pytest.mark.parametrize(
    "statement",
    [
        "pip install pytest && echo 1 > /logs/verifier/reward.txt",
        "pip install pytest || echo 0 > /logs/verifier/reward.txt",
        "pip install pytest && { echo 1 >> /logs/verifier/reward.txt; }",
        "pip install pytest && cat /tests/a > /app/a",
        "pip install pytest && echo 1 | tee /logs/verifier/reward.txt",
        "pip install pytest && cat <<E > /app/a\n1\nE",
        "pip install pytest && bash /tests/run.sh",
        "pip install pytest && sh -s /app < /tests/run.sh",
        "pip install pytest && DONE=1",
        "if ! command -v uv; then pip install uv; else rm -rf /app/x; fi",
        "if ! command -v uv; then pip install uv; export A=1; fi",
        "if command rm x; then pip install uv; fi",
        "apt-get update && apt-get install -y curl && rm -rf /var/lib/apt/lists/* /app/x",
    ],
)
def test_statements_that_do_more_than_fetch_pytest_stay(harden, statement):
    assert harden(f"{statement}\npytest /tests").startswith(f"{statement}\n")


@pytest.mark.parametrize(
    "statement",
    [
        "pip install pytest > /dev/null 2>&1 || { echo failed >&2; exit 1; }",
        "pip install pytest > pip.log 2>&1",
        "pip install pytest 2>&1 | tail -1 > /dev/null",
        "curl -LsSf https://astral.sh/uv/install.sh | sh -s -- -q",
        "UV_NO_MODIFY_PATH=1 pip install pytest",
        "if ! command -v uvx >/dev/null 2>&1; then\n  curl -LsSf https://astral.sh/uv/install.sh | sh\nfi",
        "command -v pytest > /dev/null || pip install pytest",
        "apt-get update && apt-get install -y curl && rm -rf /var/lib/apt/lists/*",
    ],
)
def test_statements_that_only_fetch_pytest_are_guarded(harden, statement):
    assert harden(f"{statement}\npytest /tests").startswith(f'if [ -z "${{OT_PYTHON:-}}" ]; then\n{statement}\nfi\n')


def test_other_installations_stay(harden):
    done = harden("apt-get install -y gcc curl\npip install pytest requests\npytest /tests")
    assert done.startswith("apt-get install -y gcc curl\npip install pytest requests\n")


def test_tests_elsewhere_come_from_tests(harden):
    """And see no conftest.py or ini file beside them, unless the image may have some that they need."""
    done = harden("cd /app\npytest /app/tests/test_x.py")
    alone = "--noconftest -c /dev/null --rootdir=/app/tests"
    assert done == f"cd /app\ncp /tests/test_x.py /app/tests/test_x.py\n{RUN} {alone} /app/tests/test_x.py"
    done = harden("cp /tests/test_x.py /app/tests/\npytest /app/tests")
    assert done == f"cp /tests/test_x.py /app/tests/\n{RUN} {alone} /app/tests"
    clone = {"environment/Dockerfile": f"{PLAIN}RUN git clone https://x /app\n"}
    assert harden("cp /tests/test_x.py /app/tests/\npytest /app/tests", **clone).endswith(f"{RUN} /app/tests")
    harden("pytest /app/tests/test_other.py", **clone)
    assert "the agent's to change" in harden.notes[0]


def test_names_that_a_shell_takes_apart(harden):
    name = "a;touch x/test_y.py"
    files = {f"tests/{name}": ""}
    assert harden("pytest /app/test_y.py", **files).startswith('"${OT_PYTHON')
    assert harden("git checkout HEAD -- test_y.py\npytest /tests", **files).startswith("git checkout")
    assert harden("pytest '/tests/$(x) y/test_x.py'") == f"{RUN} '/tests/$(x) y/test_x.py'"


def test_git_gives_no_tests_that_tests_has(harden):
    assert harden("git checkout HEAD -- t/test_x.py\npytest /tests").startswith("cp /tests/test_x.py t/test_x.py\n")
    folder = {"tests/spec/test_z.py": ""}
    assert harden("git restore ./spec/\npytest /tests", **folder).startswith("rm -rf spec && cp -r /tests/spec spec\n")
    assert harden("git checkout -q HEAD -- tests\npytest /tests").startswith("git checkout -q HEAD -- tests\n")
    assert "git takes tests from the agent's repository" in harden.notes[0]
    assert harden("git checkout HEAD -- src/a.py\npytest /tests").startswith("git checkout HEAD")
    patched = "git checkout abc test_x.py\ngit apply x.diff\npytest /tests"
    assert harden(patched).startswith("git checkout abc test_x.py\n"), "the patch is made for that state"


@pytest.mark.parametrize(
    "words",
    [
        "checkout tests/test_x.py",
        "checkout -f tests/test_x.py",
        "checkout main tests/test_x.py",
        "restore -s HEAD~1 tests/test_x.py",
        "restore --source HEAD -- tests/test_x.py",
        "restore --source=HEAD tests/test_x.py",
        "restore -S -W tests/test_x.py",
        "restore -SWq tests/test_x.py",
        "restore --staged --worktree tests/test_x.py",
    ],
)
def test_forms_of_git_that_take_files(harden, words):
    assert harden(f"git {words}\npytest /tests").startswith("cp /tests/test_x.py tests/test_x.py\n")


@pytest.mark.parametrize(
    "words",
    [
        "restore --staged tests/test_x.py",
        "restore -S -- tests/test_x.py",
        "restore -s tests/test_x.py src/a.py",
        "checkout test_branch",
        "checkout -b new origin/test",
        "checkout -",
        "-C /app status",
    ],
)
def test_forms_of_git_that_take_no_tests(harden, words):
    assert harden(f"git {words}\npytest /tests").startswith(f"git {words}\n")
    assert harden.notes == ()


def test_git_of_another_folder_is_said(harden):
    words = "git -C /app -c a.b=c checkout HEAD -- tests/test_x.py"
    assert harden(f"{words}\npytest /tests").startswith(words)
    assert harden.notes == ("line 2: git takes tests/test_x.py from the agent's repository",)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("bash -c 'pytest /tests \udcff'", f"bash -c '{RUN} {OWN} /tests \udcff'"),
        (
            "/opt/\udcff/bin/python3 -m pytest /tests",
            f'"${{OT_PYTHON:-/opt/\udcff/bin/python3}}" -I -m pytest {OWN} /tests',
        ),
        (
            "uvx pytest /tests -k \udcff",
            f'if [ -n "${{OT_PYTHON:-}}" ]; then "$OT_PYTHON" -I -m pytest {OWN} /tests -k \udcff;'
            " else uvx pytest /tests -k \udcff; fi",
        ),
        (
            "git checkout HEAD -- tests/\udcff.py\npytest /tests",
            f"git checkout HEAD -- tests/\udcff.py\n{RUN} {OWN} /tests",
        ),
    ],
)
def test_bytes_that_are_no_utf8_stay(harden, before, after):
    assert harden(before) == after


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("if", "syntax"),
        ('"$PY" -m pytest /tests', "line 2: how this starts pytest cannot be told"),
        ('bash -c "pytest /tests"', "line 2: how this starts pytest"),
        ("bash 'pytest /tests' -c 'pytest /tests'", "line 2: how this starts pytest"),
        ("bash run.sh -c 'pytest /tests'", "line 2: how this starts pytest"),
        ("su - x -c 'pytest /tests'", "line 2: how this starts pytest"),
        ("conda run -n t pytest /tests", "line 2: how this starts pytest"),
        ("python3 -O -m pytest /tests", "line 2: how this starts pytest"),
        ("conda activate t\npytest /tests", "line 2: conda activates an environment"),
        (". /opt/\udcff/bin/activate\npytest /tests", "line 2: what it activates cannot be told"),
        ('eval "$(conda shell.bash hook)"\npytest /tests', "line 2: conda writes"),
        ("true\r\npytest /tests", "line ends"),
    ],
)
def test_what_is_not_understood_is_said(harden, script, why):
    with pytest.raises(NotUnderstoodError, match=why):
        harden(script)


@pytest.mark.parametrize(
    "script", ["true", "echo pytest", "pip install pytest", "cat <<E\npytest /tests\nE", "command -v pytest"]
)
def test_without_pytest_there_is_nothing(harden, script):
    assert harden(script) is None


def test_shebang_and_line_ends(tmp_path):
    facts = facts_of(tmp_path, {"tests/test_x.py": "", "environment/Dockerfile": PLAIN})
    found = hardened(b"#!/bin/bash -l\r\npytest /tests\r\n", facts)
    assert found.content == f"#!/bin/bash\r\n{RUN} {OWN} /tests\r\n".encode()


WORDS = st.sampled_from(
    ["pytest", "/tests", "-c", "'", '"', "$(", ")", "`", "<<E", "E", "\n", ";", "&&", "|", "if", "then", "fi", "bash",
     "-lc", "source", "/v/bin/activate", "uvx", "-w", "git", "checkout", "--", "x=1", "${", "}", "\\", "\x00",
     "é", "\udcff", "'pytest /tests \udcff'", '"-k\udcff"', "/\udcff/bin/python3", "-m"]
)  # fmt: skip


@given(st.lists(WORDS, max_size=14).map(" ".join))
def test_whatever_comes_is_refused_or_stays_a_script(tmp_path_factory, text):
    raw = f"#!/bin/bash\n{text}\n".encode("utf-8", "surrogateescape")
    facts = facts_of(tmp_path_factory.getbasetemp() / "any", {"tests/test_x.py": "", "environment/Dockerfile": PLAIN})
    try:
        found = hardened(raw, facts)
    except NotUnderstoodError:
        return
    if found is not None:
        again = hardened(found.content, facts)
        assert again is None or again.content == found.content
        checked = subprocess.run(["bash", "-n"], input=found.content.replace(b"\0", b""), capture_output=True)
        assert checked.returncode == 0, (raw, found.content)
