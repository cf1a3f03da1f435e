"""What is repaired, and what looks like it and is left alone."""

import pytest
import tomli

from pytest_otval.checks.context import CheckContext
from pytest_otval.checks.fixes import proposed, repairing
from pytest_otval.checks.registry import all_checks, run_checks
from pytest_otval.task.load import load_task
from selftests.checks.conftest import SOUND, write_task

CRLF = SOUND["solution/solve.sh"].replace("\n", "\r\n")
BOM = b"\xef\xbb\xbf"


@pytest.fixture
def changes(tmp_path):
    """Write the sound task with edits; return what is proposed: content and exec bit by path."""

    def run(edits):
        write_task(tmp_path / "task", edits)
        task = load_task(tmp_path / "task", "data")
        checks = [check for check in all_checks().values() if check.repair is not None]
        made = proposed(CheckContext(task), run_checks(task, None, checks), repairing(checks))
        return {change.path: (change.content, change.executable) for _, change in made}

    return run


def content(changes, edits, path="task.toml"):
    (text, _) = changes(edits)[path]
    return text.decode()


@pytest.mark.parametrize(
    "edits",
    [
        {"solution/solve.sh": CRLF},
        {"solution/solve.sh": BOM + SOUND["solution/solve.sh"].encode()},
        {"solution/solve.sh": SOUND["solution/solve.sh"].replace("#!/bin/bash\n", "", 1)},
    ],
)
def test_a_script_becomes_as_it_was(changes, edits):
    assert changes(edits) == {"solution/solve.sh": (SOUND["solution/solve.sh"].encode(), None)}


@pytest.mark.parametrize(
    "edits",
    [
        {"tests/lib.sh": "echo a\necho b\r\n"},
        {"tests/lib.sh": "echo a\r\necho b\recho c\r\n"},
        {"environment/data.csv": "a\r\n"},
    ],
)
def test_line_ends_that_may_be_meant_stay(changes, edits):
    assert changes(edits) == {}


def test_line_ends_of_a_dockerfile(changes):
    assert content(changes, {"environment/Dockerfile": "FROM debian\r\n"}, "environment/Dockerfile") == "FROM debian\n"


@pytest.mark.parametrize("base", ["alpine:3.20", "python:3.12-alpine", "busybox"])
def test_no_bash_is_named_where_there_may_be_none(changes, base):
    edits = {"solution/solve.sh": "echo 42 > /app/answer.txt\n", "environment/Dockerfile": f"FROM {base}\n"}
    assert "solution/solve.sh" not in changes(edits)


def test_no_bash_is_named_for_python(changes):
    assert changes({"solution/solve.sh": "import os\nprint(os.sep, end='')\n"}) == {}


def test_what_a_script_calls_becomes_executable(changes):
    script = SOUND["tests/test.sh"].replace("pytest /tests/test_outputs.py", "/tests/run.sh")
    edits = {"tests/test.sh": script, "tests/run.sh": ("0644", "#!/bin/bash\npytest /tests\n")}
    assert changes(edits) == {"tests/run.sh": (None, True)}


HEAD = '# A task.\nschema_version = "1.4"  # the newest\n\n[agent]\ntimeout_sec = 60\n[verifier]\ntimeout_sec = 60\n'


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('[environment]\nmemory = "4G" # enough\n', "[environment]\nmemory_mb = 4096 # enough\n"),
        ("[environment]\n  storage='512M'\n", "[environment]\n  storage_mb=512\n"),
        ("[environment]\nallow_internet = false\n", '[environment]\nnetwork_mode = "no-network"\n'),
        ("[environment]\nallow_internet = true # yes\n", '[environment]\nnetwork_mode = "public" # yes\n'),
        ('[environment]\nmemory = "4G"\nmemory_mb = 4096\n', "[environment]\nmemory_mb = 4096\n"),
        (
            '[environment]\n  # Offline.\n  allow_internet = false # old\nnetwork_mode = "no-network"\n',
            '[environment]\n  # Offline.\n  # old\nnetwork_mode = "no-network"\n',
        ),
        ('[environment]\r\nmemory = "4G"\r\n', "[environment]\r\nmemory_mb = 4096\r\n"),
    ],
)
def test_an_old_key_gets_its_new_name_where_it_stands(changes, old, new):
    assert content(changes, {"task.toml": HEAD + old}) == HEAD + new


def test_the_old_version_key(changes):
    text = HEAD.replace("schema_version", "version")
    assert content(changes, {"task.toml": text}) == HEAD


def test_in_an_inline_table(changes):
    toml = f'environment = {{ cpus = 1, memory = "1G" }}\n{HEAD}'
    assert content(changes, {"task.toml": toml}).startswith("environment = { cpus = 1, memory_mb = 1024 }\n")


def test_keys_of_the_same_name_elsewhere_stay(changes):
    toml = f'{HEAD}[environment]\nmemory = "1G"\nenv = {{ memory = "1G" }}\n[metadata]\nmemory = "1G"\nversion = "2"\n'
    data = tomli.loads(content(changes, {"task.toml": toml}))
    assert data["metadata"] == {"memory": "1G", "version": "2"}
    assert data["environment"] == {"memory_mb": 1024, "env": {"memory": "1G"}}


@pytest.mark.parametrize(
    "toml",
    [
        f'{HEAD}[environment]\nmemory = """4G"""\n',
        f'{HEAD}[environment]\nallow_internet = true\nnetwork_mode = "no-network"\n',
        HEAD.replace("schema_version", "multi_step_reward_mode").replace("1.4", "final"),
    ],
)
def test_what_is_not_sure_stays(changes, toml):
    assert "task.toml" not in changes({"task.toml": toml})


def test_a_mark_before_task_toml_goes(changes):
    assert content(changes, {"task.toml": BOM + HEAD.encode()}) == HEAD


def test_what_somebody_allows_is_not_repaired(changes):
    toml = f'{SOUND["task.toml"]}[metadata.otval.allow]\ntext-crlf = "read by another program"\n'
    assert changes({"tests/lib.sh": "echo\r\n", "task.toml": toml}) == {}
