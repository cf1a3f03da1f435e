"""Patches that take installations and graders out of the agent's reach, the runtime is a manifest alone."""

from itertools import count

import pytest

from pytest_otval.runtimes.record import VERIFIER_JSON, Package, Runtime, write_record
from pytest_otval.sources import library
from pytest_otval.sources.editor import TaskEditor
from pytest_otval.sources.patches import apply, in_order
from selftests.checks.conftest import write_task

NAME = "python-verifier"
BY_STATUS = "if [ $? -eq 0 ]; then echo 1 > /logs/verifier/reward.txt; else echo 0 > /logs/verifier/reward.txt; fi\n"
HARDENED = '"$OT_PYTHON" -I -m pytest -c /dev/null --rootdir=/tests'
GIVEN = '"${OT_PYTHON:-python3}" -I -m pytest -c /dev/null --rootdir=/tests'


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("OT_RUNTIME_CACHE", str(tmp_path / "cache"))
    (tmp_path / "cache").mkdir()
    return tmp_path / "cache"


@pytest.fixture
def runtime(cache):
    """Write the manifest of a runtime with some packages, newer than those before."""
    years = count(2001)

    def made(*modules, **distributions):
        year = next(years)
        write_record(
            cache,
            Runtime(
                f"{year:064}",
                f"{NAME}-0123456789ab",
                f"/opt/otval/runtimes/{NAME}",
                1,
                "debian:bookworm",
                "k",
                "bin/python3",
                f"{year}-01-01T00:00:00+00:00",
                {"pip": {name: Package(version) for name, version in distributions.items()}},
                {f"lib/python3.11/site-packages/{module}/__init__.py": "b" * 64 for module in modules},
            ),
        )

    return made


@pytest.fixture
def task(tmp_path):
    def made(script, tests="", **edits):
        write_task(tmp_path / "task", {"tests/test.sh": script, "tests/test_outputs.py": tests, **edits})
        return TaskEditor(tmp_path / "task", "data")

    return made


UVX = """\
#!/bin/bash
apt-get update
apt-get install -y curl
curl -LsSf https://astral.sh/uv/0.9.5/install.sh | sh
source $HOME/.local/bin/env

uvx \\
  -p 3.13 \\
  -w pytest==8.4.1 \\
  pytest /tests/test_outputs.py -rA
"""


@pytest.mark.parametrize(
    ("script", "after"),
    [
        (UVX, f"#!/bin/bash\n\n{HARDENED} /tests/test_outputs.py -rA\n"),
        (
            "#!/bin/bash\npip install pytest==8.4.1 >/dev/null 2>&1\npytest /tests/test_outputs.py\n",
            f"#!/bin/bash\n{GIVEN} /tests/test_outputs.py\n",
        ),
    ],
)
def test_what_fetches_pytest_is_taken_out(task, runtime, script, after):
    runtime()
    editor = task(script + BY_STATUS)
    outcome = apply(editor, [library.installs_in_runtime()])
    assert (outcome.applied, outcome.trouble) == (["installs-in-runtime"], [])
    assert editor.text("tests/test.sh") == after + BY_STATUS
    assert f'"id": "{NAME}-0123456789ab"' in editor.text(f"tests/{VERIFIER_JSON}")


def test_packages_that_the_runtime_has_are_taken_out_too(task, runtime):
    script = "#!/bin/bash\nuvx -w pytest -w requests==2.32.4 -w PyYAML pytest --timeout=9 /tests/test_outputs.py\n"
    editor = task(script + BY_STATUS, "import requests, yaml\n")
    runtime("requests")
    assert "uv brings what the tests import (yaml)" in apply(editor, [library.installs_in_runtime()]).trouble[0]
    runtime("requests", "yaml")
    assert "the plugin that has --timeout" in apply(editor, [library.installs_in_runtime()]).trouble[0]
    runtime("requests", "yaml", "pytest_timeout", "_pytest")
    assert apply(editor, [library.installs_in_runtime()]).applied == ["installs-in-runtime"]
    assert editor.text("tests/test.sh").startswith(f"#!/bin/bash\n{HARDENED} --timeout=9 /tests/test_outputs.py")


def test_an_installation_by_pip_of_what_it_has_is_taken_out(task, runtime):
    runtime("yaml", PyYAML="6.0.2")
    editor = task(
        f"#!/bin/bash\npip install pytest pyyaml\npytest /tests/test_outputs.py\n{BY_STATUS}", "import yaml\n"
    )
    assert apply(editor, [library.installs_in_runtime()]).applied == ["installs-in-runtime"]
    assert editor.text("tests/test.sh") == f"#!/bin/bash\n{GIVEN} /tests/test_outputs.py\n{BY_STATUS}"


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("npm ci\nnode /tests/check.js\n", "no pytest is started"),
        (
            "apt-get update && apt-get install -y curl jq\npytest /tests/test_outputs.py\n",
            "fetches while the tests run",
        ),
    ],
)
def test_what_else_is_fetched_is_refused_and_nothing_is_changed(task, runtime, script, words):
    runtime()
    editor = task(f"#!/bin/bash\n{script}{BY_STATUS}")
    before = editor.content()
    assert words in apply(editor, [library.installs_in_runtime()]).trouble[0]
    assert editor.content() == before


def test_it_is_told_what_the_tests_import_that_the_runtime_lacks(task, runtime):
    runtime()
    editor = task(f"#!/bin/bash\npip install pytest\npytest /tests/test_outputs.py\n{BY_STATUS}", "import astroid\n")
    assert (
        "pip install pytest (tests/test.sh: the tests import astroid"
        in apply(editor, [library.installs_in_runtime()]).trouble[0]
    )


@pytest.mark.parametrize("patch", [library.hardened_tests, library.installs_in_runtime])
def test_a_runtime_that_is_not_there_is_told_with_the_command_that_makes_it(task, cache, patch):
    editor = task(f"#!/bin/bash\npip install pytest\npytest /tests/test_outputs.py\n{BY_STATUS}")
    assert f"python -m pytest_otval runtime build {NAME}" in apply(editor, [patch()]).trouble[0]
    assert patch().inputs() == "None"


def test_what_is_made_depends_on_the_runtime(runtime):
    runtime()
    assert library.hardened_tests().inputs() == f"{NAME}-0123456789ab@sha256:{2001:064}"


def test_a_grader_runs_in_the_runtime(task, runtime):
    runtime("yaml")
    lines = "cd /app\nif timeout 9 python3 -u /tests/grade.py --all; then\n  echo 1 > /logs/verifier/reward.txt\nfi\n"
    editor = task(f"#!/bin/bash\n{lines}", **{"tests/grade.py": "import json, yaml\n"})
    assert apply(editor, [library.isolated_graders()]).applied == ["isolated-graders"]
    assert 'timeout 9 "${OT_PYTHON:-python3}" -I -u /tests/grade.py --all; then' in editor.text("tests/test.sh")
    assert f'"id": "{NAME}-0123456789ab"' in editor.text(f"tests/{VERIFIER_JSON}")


@pytest.mark.parametrize(
    ("line", "grader"),
    [
        ("python3 /tests/grade.py", "import product\n"),
        ("python3 /tests/grade.py", "import helper\n"),
        ("python3 /tests/grade.py", "import subprocess, sys\nsubprocess.run([sys.executable, '/app/x.py'])\n"),
        ("python3 -W error /tests/grade.py", ""),
        ("python3 /app/grade.py", ""),
        ("/opt/venv/bin/python3 /tests/grade.py", ""),
    ],
)
def test_a_grader_that_may_need_its_own_python_stays(task, runtime, line, grader):
    runtime()
    editor = task(f"#!/bin/bash\n{line}\n{BY_STATUS}", **{"tests/grade.py": grader, "tests/helper.py": ""})
    outcome = apply(editor, [library.isolated_graders()])
    assert (outcome.applied, outcome.trouble) == ([], [])


def test_a_grader_in_the_agents_folder_comes_from_tests(task):
    grader = {"environment/Dockerfile": "FROM debian:12\nWORKDIR /app\nCOPY grade.py /app/\n"}
    files = {**grader, "environment/grade.py": "raise SystemExit(1)\n", "tests/grade.py": "raise SystemExit(0)\n"}
    editor = task(f"#!/bin/bash\ncd /app\nif true; then\n    python3 grade.py --all\nfi\n{BY_STATUS}", **files)
    assert apply(editor, [library.judges_restored()]).applied == ["judges-restored"]
    assert "if true; then\n    cp /tests/grade.py /app/grade.py\n    python3 grade.py --all\nfi" in editor.text(
        "tests/test.sh"
    )


def test_a_grader_that_tests_does_not_have_stays(task):
    grader = {"environment/Dockerfile": "FROM debian:12\nCOPY grade.py /app/\n", "environment/grade.py": ""}
    editor = task(f"#!/bin/bash\npython3 /app/grade.py\n{BY_STATUS}", **grader)
    outcome = apply(editor, [library.judges_restored()])
    assert (outcome.applied, outcome.trouble) == ([], [])


def test_hardening_comes_after_the_guard_of_the_reward(task, runtime):
    runtime()
    editor = task(f"#!/bin/bash\nset -e\npytest /tests/test_outputs.py\n{BY_STATUS}")
    assert apply(editor, in_order([library.reward_guard(), library.hardened_tests()])).applied == [
        "reward-guard",
        "hardened-tests",
    ]
