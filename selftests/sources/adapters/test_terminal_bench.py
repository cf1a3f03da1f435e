"""Tasks in Terminal-Bench's old format, and the compose files they come with."""

import os
import subprocess
import sys

import pytest
import tomli

from pytest_otval.sources.adapters.base import Converted, RefusalError, Refused
from pytest_otval.sources.adapters.compose import Service, read_service
from pytest_otval.sources.adapters.registry import make_adapter
from pytest_otval.sources.files import SourceError
from selftests.sources.adapters.samples import COMPOSE, TASK_YAML, old_task, write_folder


def convert(tmp_path, **changes):
    write_folder(tmp_path / "source/sums/one", old_task(**changes))
    (outcome,) = make_adapter("terminal-bench").convert(tmp_path / "source")
    return outcome


def texts(outcome):
    assert isinstance(outcome, Converted), outcome
    return {path: file.content.decode() for path, file in outcome.files.items()}


def test_each_file_lies_where_only_the_right_phase_has_it(tmp_path):
    outcome = convert(tmp_path)
    files = texts(outcome)
    assert outcome.name == "sums__one"
    assert set(files) == {
        *("task.toml", "instruction.md", "environment/Dockerfile", "environment/numbers.txt", "solution/solve.sh"),
        *("tests/test.sh", "tests/run-tests.sh", "tests/test_outputs.py"),
    }
    assert files["solution/solve.sh"] == "#!/bin/bash\necho 6 > /app/sum.txt\n"
    settings = tomli.loads(files["task.toml"])
    assert settings["environment"] == {
        "build_timeout_sec": 1800,
        "network_mode": "public",
        "cpus": 1,
        "memory_mb": 512,
        "env": {"TEST_DIR": "/tests"},
    }
    assert settings["metadata"]["path"] == "sums/one"
    assert (settings["agent"]["timeout_sec"], settings["verifier"]["timeout_sec"]) == (600, 120)


SUMMARY = "==== short test summary info ====\n"
OUTPUTS = [
    (f"{SUMMARY}PASSED a\nSKIPPED b\n1 passed", 0, "1"),
    (f"{SUMMARY}PASSED a\nPASSED b", 0, "1"),
    (f"{SUMMARY}PASSED a\n", 1, "0"),
    (f"{SUMMARY}PASSED a\nFAILED b\n", 0, "0"),
    (f"{SUMMARY}PASSED a\nERROR b\n", 0, "0"),
    (f"{SUMMARY}SKIPPED a\n", 0, "0"),
    (f"PASSED a\n{SUMMARY}", 0, "0"),
    ("PASSED a\n", 0, "0"),
    ("", 0, "0"),
]
SWEBENCH = [
    ("SWEBench results starts here\nPASSED\nSWEBench results ends here\nFAILED", 0, "1"),
    ("SWEBench results starts here\nFAILED\nSWEBench results ends here\n", 0, "0"),
    ("PASSED\nSWEBench results starts here\nSWEBench results ends here\nPASSED\n", 0, "0"),
    (f"{SUMMARY}PASSED a\n", 0, "0"),
]


@pytest.mark.parametrize(
    ("parser", "output", "status", "reward"),
    [("pytest", *case) for case in OUTPUTS] + [("swebench", *case) for case in SWEBENCH],
)
def test_output_and_status_decide(tmp_path, parser, output, status, reward):
    files = texts(
        convert(
            tmp_path,
            **{
                "task.yaml": TASK_YAML.replace("parser_name: pytest", f"parser_name: {parser}"),
                "run-tests.sh": f"sleep 60 &\nprintf %s '{output}'\nexit {status}\n",
            },
        )
    )
    (tmp_path / "run-tests.sh").write_text(files["tests/run-tests.sh"].replace("sleep 60", "sleep 1"))
    script = files["tests/test.sh"].replace("/logs/", f"{tmp_path}/logs/").replace("/tests/", f"{tmp_path}/")
    subprocess.run(["bash", "-c", script], check=False, capture_output=True)
    assert (tmp_path / "logs/verifier/reward.txt").read_text().strip() == reward


def test_what_real_pytest_says_is_understood(tmp_path):
    (tmp_path / "test_it.py").write_text("def test_good(): pass\n")
    command = (
        f"PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 {sys.executable} -m pytest -rA -p no:cacheprovider {tmp_path}/test_it.py"
    )
    script = texts(convert(tmp_path))["tests/test.sh"].replace("/logs/", f"{tmp_path}/logs/")
    for content, reward in (("pass", "1"), ("assert 0", "0")):
        (tmp_path / "test_it.py").write_text(f"def test_good(): pass\ndef test_other(): {content}\n")
        run = script.replace("bash /tests/run-tests.sh", command)
        subprocess.run(["bash", "-c", run], check=False, capture_output=True, env={"PATH": os.environ["PATH"]})
        assert (tmp_path / "logs/verifier/reward.txt").read_text().strip() == reward


def test_commands_of_a_solution_yaml_share_one_shell(tmp_path):
    commands = "- command: cd /app\n- command: |-\n    echo 6 > sum.txt\n  min_timeout_sec: 3\n"
    files = texts(convert(tmp_path, **{"solution.sh": None, "solution.yaml": commands}))
    assert files["solution/solve.sh"] == "#!/bin/bash\ncd /app\necho 6 > sum.txt\n"


REFUSED = [
    ({"task.yaml": "a: [\n"}, "unreadable", "no YAML in line"),
    ({"task.yaml": "- a\n"}, "unreadable", "holds no fields"),
    ({"task.yaml": "a: &a [1]\nb: *a\n"}, "unreadable", "has aliases"),
    ({"task.yaml": "!!python/object/apply:os.system [id]\n"}, "unreadable", "no YAML"),
    ({"task.yaml": "[" * 5000}, "unreadable", "no YAML"),
    ({"task.yaml": TASK_YAML.replace("instruction", "text")}, "wrong-field", "has no instruction"),
    ({"task.yaml": TASK_YAML.replace("600", "-1")}, "wrong-field", "max_agent_timeout_sec"),
    ({"task.yaml": TASK_YAML.replace("120.0", ".nan")}, "wrong-field", "max_test_timeout_sec"),
    ({"task.yaml": TASK_YAML.replace("parser_name: pytest", "parser_name: [1]")}, "unsupported-tests", "parser_name"),
    ({"run-tests.sh": None}, "no-tests", "has no run-tests.sh"),
    ({"tests/test_outputs.py": None}, "no-tests", "runs $TEST_DIR/test_outputs.py, which"),
    ({"tests/run-tests.sh": "other"}, "unsupported-tests", "two different"),
    ({"tests/test.sh": "exit"}, "unsupported-tests", "would be run or built by itself"),
    ({"tests/setup.sh": "exit"}, "unsupported-tests", "would be run or built by itself"),
    ({"solution.sh": None}, "no-solution", "neither solution.sh nor solution.yaml"),
    ({"solution.sh": None, "solution.yaml": "- command: C-c\n  append_enter: false\n"}, "no-solution", "command 1"),
    ({"solution.sh": None, "solution.yaml": "a\n"}, "no-solution", "no list of commands"),
    ({"Dockerfile": None}, "unreadable", "has no Dockerfile"),
    ({"Dockerfile": "FORM x\n"}, "unreadable", "Dockerfile: line 1"),
    ({"Dockerfile": "FROM x\nCOPY solution.sh /\n"}, "unsupported-tests", "copies solution.sh"),
    ({"Dockerfile": 'FROM x\nADD "./tests/" /tests\n'}, "unsupported-tests", "copies tests"),
    ({"docker-compose.yaml": None}, "unreadable", "has no docker-compose.yaml"),
]


@pytest.mark.parametrize(("changes", "reason", "said"), REFUSED, ids=lambda value: str(value)[:40])
def test_a_hostile_task_is_refused_in_one_line(tmp_path, changes, reason, said):
    outcome = convert(tmp_path, **changes)
    assert isinstance(outcome, Refused), outcome
    assert outcome.reason == reason
    assert said in outcome.why and outcome.why.isprintable()


def test_links_and_fifos_are_refused(tmp_path):
    write_folder(tmp_path / "one", old_task())
    (tmp_path / "one/link").symlink_to("/etc/passwd")
    (outcome,) = make_adapter("terminal-bench").convert(tmp_path)
    assert (outcome.reason, outcome.why) == ("unreadable", "link is a link")
    (tmp_path / "one/link").unlink()
    os.mkfifo(tmp_path / "one/link")
    (outcome,) = make_adapter("terminal-bench").convert(tmp_path)
    assert (outcome.reason, outcome.why) == ("unreadable", "link is a FIFO")


def test_no_folder_is_no_source(tmp_path):
    with pytest.raises(SourceError):
        list(make_adapter("terminal-bench").convert(tmp_path / "absent"))


def test_a_plain_service():
    assert read_service(COMPOSE) == Service({"TEST_DIR": "/tests"}, None, 1.0, 512)
    assert read_service("services:\n  a:\n    build: .\n    working_dir: /app\n") == Service(workdir="/app")


NOT_PLAIN = [
    ("a", "has no services"),
    ("services:\n  a: {}\n  b: {}\n", "has 2 services: a, b"),
    ("services:\n  a: {}\nnetworks: {x: {}}\n", "has `networks`"),
    ("services:\n  a: 1\n", "no table"),
    ("services:\n  a: {privileged: true}\n", "has `privileged`"),
    ("services:\n  a: {ports: ['80:80']}\n", "has `ports`"),
    ("services:\n  a: {volumes: ['./:/app']}\n", "has the volume './:/app'"),
    ("services:\n  a: {volumes: {a: 1}}\n", "has the volume"),
    ("services:\n  a: {build: {context: ..}}\n", "another `build`"),
    ("services:\n  a: {build: {target: x}}\n", "another `build`"),
    ("services:\n  a: {command: [python, serve.py]}\n", "has the command"),
    ("services:\n  a: {environment: [HOME]}\n", "variables of the host"),
    ("services:\n  a: {environment: {KEY: '${SECRET}'}}\n", "needs others of the host"),
    ("services:\n  a: {environment: {'A B': c}}\n", "has the variable"),
    ("services:\n  a: {working_dir: 'a; b'}\n", "has the working_dir"),
    ("services:\n  a: {deploy: {replicas: 3}}\n", "more than limits"),
    ("services:\n  a: {deploy: {resources: {limits: {pids: 3}}}}\n", "other kinds"),
    ("services:\n  a: {deploy: {resources: {limits: {cpus: '0'}}}}\n", "limit of cpus"),
    ("services:\n  a: {deploy: {resources: {limits: {memory: lots}}}}\n", "limit of memory"),
    ("services: &s\n  a: {x: *s}\n", "aliases"),
]


@pytest.mark.parametrize(("source", "said"), NOT_PLAIN)
def test_what_is_no_single_plain_container_is_refused(source, said):
    with pytest.raises(RefusalError) as refused:
        read_service(source)
    assert refused.value.reason == "compose"
    assert said in refused.value.why
