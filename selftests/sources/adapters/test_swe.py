"""Rows in the manner of SWE-bench."""

import json
import shutil
import subprocess

import pytest

from pytest_otval.sources.adapters.base import Converted, Refused
from pytest_otval.sources.adapters.registry import make_adapter
from pytest_otval.task.model import TaskConfig
from selftests.sources.adapters.samples import COMMIT, FIXED, TESTS, diff, row, scale_row, write_jsonl


@pytest.fixture
def convert(tmp_path):
    def run(changes=None, **options):
        source = write_jsonl(tmp_path / "rows.jsonl", [row(**(changes or {}))])
        (outcome,) = make_adapter("swe", options).convert(source)
        return outcome

    return run


def texts(outcome):
    assert isinstance(outcome, Converted), outcome
    return {path: file.content.decode() for path, file in outcome.files.items()}


def test_patch_and_tests_lie_where_only_the_right_phase_has_them(convert):
    outcome = convert()
    files = texts(outcome)
    assert outcome.name == "owner__product-1"
    assert files["solution/fix.patch"] == row()["patch"]
    assert files["tests/test.patch"] == row()["test_patch"]
    assert set(files) == {
        *("task.toml", "instruction.md", "environment/Dockerfile", "solution/solve.sh", "solution/fix.patch"),
        *("tests/Dockerfile", "tests/test.sh", "tests/test.patch", "tests/run_tests.py", "tests/grade.py"),
        "tests/ids.json",
    }
    assert outcome.files["tests/test.sh"].executable and outcome.files["solution/solve.sh"].executable
    assert files["environment/Dockerfile"].startswith("FROM example/product:1\n")
    assert files["tests/Dockerfile"] == files["environment/Dockerfile"] + "COPY . /tests/\n"
    assert json.loads(files["tests/ids.json"])["run"] == ["tests/test_product.py"]


def test_the_tests_are_not_taken_from_the_agent_nor_what_configures_them(convert):
    script = texts(convert())["tests/test.sh"]
    first, then = "--exclude=tests/test_product.py", "'--exclude=*/conftest.py'"
    assert script.index(first) < script.index("--include=product.py") < script.index(then)


def test_cut_ids_are_repaired_and_counted(convert):
    cut = ["tests/test_product.py::test_sum[1", "tests/test_product.py::test_sum[2"]
    files = texts(convert({"FAIL_TO_PASS": json.dumps(cut)}))
    assert json.loads(files["tests/ids.json"])["fail_to_pass"] == json.loads(row()["FAIL_TO_PASS"])
    assert "repaired_ids = 2" in files["task.toml"]


def test_the_image_comes_from_the_row_or_from_the_option(convert):
    template = "swebench/sweb.eval.x86_64.{docker_id}:latest"
    assert "FROM example/product:1\n" in texts(convert(image=template))["environment/Dockerfile"]
    files = texts(convert({"docker_image": None}, image=template))
    assert files["environment/Dockerfile"].startswith("FROM swebench/sweb.eval.x86_64.owner_1776_product-1:latest\n")
    files = texts(convert({"docker_image": None, "image_name": "a.b:5000/c/d@sha256:" + "0" * 64}))
    assert files["environment/Dockerfile"].startswith("FROM a.b:5000/c/d@sha256:")


def test_options_stand_in_the_task(convert):
    files = texts(convert(workdir="/work", python="/opt/env/bin/python", network="public", agent_seconds=60))
    assert "\nWORKDIR /work\n" in files["environment/Dockerfile"]
    assert "\n/opt/env/bin/python -I /tests/run_tests.py" in files["tests/test.sh"]
    assert "cd /work" in files["solution/solve.sh"]
    config = TaskConfig.model_validate(__import__("tomli").loads(files["task.toml"]))
    assert (config.agent.timeout_sec, config.environment.network_mode) == (60, "public")


REFUSED = [
    ({"patch": None}, "wrong-field", "has no patch"),
    ({"patch": 3}, "wrong-field", "patch is int"),
    ({"patch": " \n"}, "wrong-field", "patch is empty"),
    ({"patch": "no diff at all"}, "wrong-patch", "changes no file"),
    ({"patch": row()["patch"][:-25]}, "wrong-patch", "cannot be read as a patch"),
    ({"patch": diff("a", "", "b\n").replace("new file mode 100644\n", "")}, "wrong-patch", "no line `new file mode`"),
    ({"patch": diff("../../etc/passwd", "a\n", "b\n")}, "unsafe-path", ".. in its path"),
    ({"patch": diff("/etc/passwd", "a\n", "b\n")}, "unsafe-path", "etc/passwd"),
    ({"patch": diff(".git/hooks/pre-commit", "", "b\n")}, "unsafe-path", "git would not"),
    ({"patch": diff("a/.GIT/config", "", "b\n")}, "unsafe-path", "git would not"),
    ({"patch": diff('a"b', "a\n", "b\n")}, "unsafe-path", "cannot be used as it is"),
    ({"patch": diff("a\x1bb", "a\n", "b\n")}, "unsafe-path", "cannot be used as it is"),
    ({"patch": "diff --git a/x b/y\nrename from x\nrename to ../y\n" + diff("z", "a\n", "b\n")}, "unsafe-path", ".."),
    ({"patch": row()["patch"] + "\0"}, "wrong-field", "control character"),
    ({"patch": row()["patch"].replace("+ b", "+ \ud800")}, "wrong-field", "half a character"),
    ({"patch": "x" * (17 * 1024 * 1024)}, "too-large", "patch has more than"),
    ({"test_patch": ""}, "wrong-field", "test_patch is empty"),
    ({"problem_statement": "a\x1b[2Jb"}, "wrong-field", "control character"),
    ({"problem_statement": ["a"]}, "wrong-field", "problem_statement is list"),
    ({"base_commit": "main"}, "wrong-field", "no commit"),
    ({"base_commit": f"{COMMIT}; rm -rf /"}, "wrong-field", "no commit"),
    ({"repo": "a"}, "wrong-field", "no OWNER/NAME"),
    ({"docker_image": "a b"}, "wrong-field", "no name of an image"),
    ({"docker_image": "a\nRUN evil"}, "wrong-field", "no name of an image"),
    ({"docker_image": {"a": 1}}, "wrong-field", "docker_image is dict"),
    ({"docker_image": None}, "no-image", "has none of docker_image"),
    ({"instance_id": "a\nb"}, "bad-name", "cannot be shown"),
    ({"instance_id": None}, "unreadable", "has no instance_id"),
    ({"FAIL_TO_PASS": "[]"}, "no-tests", "is empty"),
    ({"FAIL_TO_PASS": "[1"}, "wrong-field", "no JSON"),
    ({"FAIL_TO_PASS": "[" * 100_000}, "wrong-field", "no JSON"),
    ({"FAIL_TO_PASS": '{"a": 1}'}, "wrong-field", "is dict and no list"),
    ({"FAIL_TO_PASS": [1]}, "wrong-field", "holds int"),
    ({"FAIL_TO_PASS": ["a.py::b\n"]}, "wrong-field", "cannot be shown"),
    ({"FAIL_TO_PASS": ["../a.py::b"]}, "unsafe-path", ".. in its path"),
    ({"PASS_TO_PASS": ["test_x (tests.Case)"]}, "unsupported-tests", "no id of pytest"),
    ({"PASS_TO_PASS": ["tests/other.py::test_sum[1"]}, "cut-ids", "does not show its parameters"),
]


@pytest.mark.parametrize(("changes", "reason", "said"), REFUSED, ids=lambda value: str(value)[:30])
def test_a_hostile_row_is_refused_in_one_line(convert, changes, reason, said):
    outcome = convert(changes)
    assert isinstance(outcome, Refused), outcome
    assert outcome.reason == reason
    assert said in outcome.why
    assert outcome.why.isprintable() and len(outcome.why) < 700


def test_a_row_of_scale_swe_brings_its_tests_and_its_workdir(tmp_path):
    source = write_jsonl(tmp_path / "rows.jsonl", [scale_row(), scale_row(instance_id="other", f2p_patch=None)])
    both, script_alone = map(texts, make_adapter("swe").convert(source))
    assert 'repo = "owner/product"' in both["task.toml"]
    assert f'base_commit = "{COMMIT}"' in both["task.toml"]
    lines = both["environment/Dockerfile"].splitlines()
    assert lines[:3] == ["FROM example/product:1", "USER root", "WORKDIR /workspace/product"]
    assert lines[3:5] == ["COPY first.sh /tmp/first.sh", "RUN bash /tmp/first.sh && rm /tmp/first.sh"]
    assert both["environment/first.sh"] == both["tests/first.sh"] == scale_row()["pre_commands"]
    assert json.loads(both["tests/ids.json"])["run"] == ["test_fail_to_pass.py", "tests/test_product.py"]
    (tmp_path / "repository").mkdir()
    for files, names in ((both, ["test_fail_to_pass.py", "tests"]), (script_alone, ["test_fail_to_pass.py"])):
        git = ["git", "-C", str(tmp_path / "repository"), "apply", "-"]
        subprocess.run(git, input=files["tests/test.patch"], text=True, check=True)
        assert sorted(path.name for path in (tmp_path / "repository").iterdir()) == names
        assert (tmp_path / "repository" / "test_fail_to_pass.py").read_text() == scale_row()["f2p_script"]
        shutil.rmtree(tmp_path / "repository")
        (tmp_path / "repository").mkdir()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"f2p_patch": None, "f2p_script": None}, "no-tests"),
        ({"f2p_patch": ["a"]}, "wrong-field"),
        ({"f2p_script": "a\0b"}, "wrong-field"),
        ({"workdir": "/a b"}, "wrong-field"),
        ({"workdir": "/a\nRUN evil"}, "wrong-field"),
        ({"pre_commands": {"a": 1}}, "wrong-field"),
        ({"user": "../x"}, "wrong-field"),
        ({"parent_commit": "main"}, "wrong-field"),
    ],
)
def test_a_hostile_row_of_scale_swe_is_refused(tmp_path, changes, reason):
    (outcome,) = make_adapter("swe").convert(write_jsonl(tmp_path / "rows.jsonl", [scale_row(**changes)]))
    assert isinstance(outcome, Refused) and outcome.reason == reason


def test_a_source_without_the_last_line_end_is_taken(convert):
    files = texts(convert({"patch": row()["patch"].removesuffix("\n")}))
    assert files["solution/fix.patch"] == row()["patch"]


def test_samples_are_what_they_seem():
    assert "a - b" not in FIXED and "1 2" in TESTS
