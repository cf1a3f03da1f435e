"""Saving runtimes by a task's own scripts, in real containers, and what happens where the cache does not have them."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pytest_otval.__main__ import main
from pytest_otval.core import Conclusion
from pytest_otval.images.locks import sweep_half
from pytest_otval.runtimes.record import TASK_JSON, VERIFIER_JSON, records
from pytest_otval.sandbox.toolbox import SCRIPTS
from pytest_otval.stages.saving import save_runtimes
from pytest_otval.task.digest import task_digest
from selftests.conftest import REPOSITORY, _with_settings
from selftests.fakes import TOML, make_task

pytestmark = pytest.mark.integration

TOOLS = "/opt/otval/runtimes/tools"
INSTALL = """
ot_runtime tools || {
    mkdir -p "$OT_RUNTIME/bin"
    cp /setup_files/answer "$OT_RUNTIME/bin/answer"
    chmod 755 "$OT_RUNTIME/bin/answer"
    ot_runtime_save
}
"""
ANSWER = "#!/bin/sh\necho 42\n"
SETUP = f"#!/bin/bash\nset -e\n. ot-runtime.sh\n{INSTALL}\n{TOOLS}/bin/answer > /root/answer\n"
SOLVE = f"{TOOLS}/bin/answer > /answer"
TEST = "cmp -s /answer /root/answer && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt"
FILES = {"setup_files/setup.sh": SETUP, "setup_files/answer": ANSWER}


@pytest.fixture
def machine(real, own_cache):
    """The real machine with a cache of its own."""
    return _with_settings(real, real.settings.verdict)


def task_in(folder, **changes):
    return make_task(folder, **{"solve": SOLVE, "test": TEST, "files": FILES, **changes})


def test_a_setup_script_is_run_once_for_all_tasks_that_share_its_runtime(machine, own_cache, tmp_path, ask_real):
    one, other = task_in(tmp_path / "1"), task_in(tmp_path / "2")
    log = tmp_path / "log"
    (saved,) = save_runtimes(machine, one, log=log)
    assert "tools is installed now" in log.read_text()
    assert saved.file == one.path / "setup_files" / TASK_JSON
    (shared,) = save_runtimes(machine, other, log=tmp_path / "other")
    assert shared.runtime == saved.runtime
    assert not (tmp_path / "other").exists()
    assert save_runtimes(machine, one) == []
    assert list(saved.runtime.files) == ["bin/answer"]
    result = ask_real("oracle", other, network="none")
    assert (result.reason, result.facts["score"]) == ("expected", 1.0), result
    assert result.facts["runtimes"] == [f"{saved.runtime.id}@sha256:{saved.runtime.checksum}"]
    assert "comes from the cache" in (tmp_path / "evidence" / "setup.txt").read_text()
    assert sorted(path.suffix for path in own_cache.iterdir()) == [".json", ".sqfs"]


def test_a_verifiers_script_ends_where_its_runtime_is_saved(machine, tmp_path, ask_real):
    test = """
. ot-runtime.sh
ot_runtime grader || { echo 'cmp -s /answer /tests/answer' > "$OT_RUNTIME/grade" && ot_runtime_save; }
sh "$OT_RUNTIME/grade" && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt
"""
    task = make_task(tmp_path, "echo 42 > /answer", test, files={"tests/answer": "42\n"})
    (saved,) = save_runtimes(machine, task)
    assert saved.file == task.path / "tests" / VERIFIER_JSON
    assert list(saved.runtime.files) == ["grade"]
    assert ask_real("oracle", task).reason == ask_real("noop", task).reason == "expected"


def damage(own_cache, how):
    (path,) = own_cache.glob("*.sqfs")
    if how == "missing":
        path.unlink()
    elif how == "cut":
        path.chmod(0o644)
        os.truncate(path, 100)
    else:
        path.chmod(0o644)
        data = bytearray(path.read_bytes())
        data[-10] ^= 1
        path.write_bytes(data)


@pytest.mark.parametrize(
    ("how", "said"), [("missing", "is missing"), ("cut", "100 bytes in place"), ("changed", "does not match")]
)
def test_what_is_not_right_is_not_used(machine, own_cache, tmp_path, ask_real, how, said):
    task = task_in(tmp_path)
    save_runtimes(machine, task)
    damage(own_cache, how)
    result = ask_real("oracle", task, network="none")
    assert (result.reason, result.verdict) == ("runtime-missing", "error")
    assert said in result.headline
    assert "--otval-save-runtimes" in result.headline
    installed = ask_real("oracle", task)
    assert installed.reason == "expected", installed
    assert installed.facts["runtimes"] == ["tools: installed in the trial"]
    log = (tmp_path / "evidence" / "setup.txt").read_text()
    assert said in log
    (again,) = save_runtimes(machine, task)
    assert machine.runtimes.fault(again.runtime) == ""


@pytest.mark.parametrize("phase", ["agent", "verifier"])
def test_without_its_runtime_a_task_is_not_judged(machine, tmp_path, ask_real, phase):
    """A failed installation is no fault of the task's solution."""
    script = "#!/bin/bash\n. ot-runtime.sh\not_runtime tools || { false && ot_runtime_save; }\n"
    script += "echo 0 > /logs/verifier/reward.txt\n" if phase == "verifier" else "exit 1\n"
    name = {"agent": "setup_files/setup.sh", "verifier": "tests/test.sh"}[phase]
    toml = TOML.replace("[verifier]", '[verifier]\nnetwork_mode = "public"')
    task = make_task(tmp_path, toml=toml, files={name: script})
    result = ask_real("oracle", task)
    assert (result.reason, result.verdict) == ("runtime-missing", "error"), result
    assert "did not come to its end" in result.headline


@pytest.mark.parametrize(
    ("script", "reason", "said"),
    [
        ("ot_runtime tools || { touch $OT_RUNTIME/half; false; ot_runtime_save; }", "setup-failed", "status 1"),
        ("ot_runtime tools || touch $OT_RUNTIME/half", "setup-failed", "without ot_runtime_save"),
        ("ot_runtime tools || ot_runtime_save", "setup-failed", "empty"),
        ("ot_runtime tools || { rm -r $OT_RUNTIME; touch $OT_RUNTIME; ot_runtime_save; }", "internal", "no folder"),
        ("ot_runtime tools || { sleep 99; ot_runtime_save; }", "setup-timeout", "within its limit"),
    ],
)
def test_what_is_not_whole_is_not_saved(machine, own_cache, tmp_path, script, reason, said):
    toml = TOML.replace("[environment]", "[environment]\nbuild_timeout_sec = 5.0")
    files = {"setup_files/setup.sh": f"#!/bin/bash\n. ot-runtime.sh\n{script}\n"}
    task = task_in(tmp_path, files=files, toml=toml)
    with pytest.raises(Conclusion) as caught:
        save_runtimes(machine, task)
    assert (caught.value.reason, said in caught.value.headline) == (reason, True), caught.value
    assert list(own_cache.iterdir()) == []
    assert not (task.path / "setup_files" / TASK_JSON).exists()


def command(*words, **env):
    argv = [sys.executable, "-m", "pytest_otval", "runtime", *map(str, words)]
    path = os.pathsep.join(filter(None, (str(REPOSITORY), os.environ.get("PYTHONPATH"))))
    return argv, {**os.environ, "PYTHONPATH": path, **env}


@pytest.fixture
def in_workspace(real, own_cache, monkeypatch):
    """The cache of a command that is run for itself."""
    monkeypatch.setenv("OT_WORKSPACE", str(real._workspace.root))
    return own_cache


def test_a_save_that_is_killed_leaves_nothing_half(machine, in_workspace, tmp_path):
    script = SETUP.replace("    ot_runtime_save", "    sleep 60\n    ot_runtime_save")
    task = task_in(tmp_path, files={**FILES, "setup_files/setup.sh": script})
    argv, env = command("build", task.path)
    process = subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=REPOSITORY)
    deadline = time.monotonic() + 60
    while not list(in_workspace.glob("*.lock")) and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(2)
    assert process.poll() is None, process.stdout.read()
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert list(records(in_workspace)) == []
    assert not (task.path / "setup_files" / TASK_JSON).exists()
    sweep_half(in_workspace)
    assert list(in_workspace.iterdir()) == []
    assert len(save_runtimes(machine, task_in(tmp_path))) == 1


def test_a_script_saves_by_hand(in_workspace, tmp_path):
    ran = tmp_path / "ran"
    script = SETUP.replace("ot_runtime tools", f"touch {ran} 2>/dev/null || true\not_runtime tools", 1)
    task = task_in(tmp_path, files={**FILES, "setup_files/setup.sh": script})
    _, env = command()
    env["PATH"] = f"{SCRIPTS}:{Path(sys.executable).parent}:{env['PATH']}"
    ended = subprocess.run(
        ["bash", "setup_files/setup.sh", "--save"], env=env, cwd=task.path, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    named = json.loads((task.path / "setup_files" / TASK_JSON).read_text())
    assert named["id"].startswith("tools-")
    assert not ran.exists(), "the script itself ran on the host"
    assert [f"sha256:{one.checksum}" for one in records(in_workspace)] == [named["checksum"]]


@pytest.fixture
def run_pytest(in_workspace, tmp_path):
    """Run oracle and noop of a task by pytest itself; return its results, and what it printed."""

    def run(task, *extra):
        _, env = command()
        argv = [sys.executable, "-m", "pytest", str(task.path), "-m", "oracle or noop", "-p", "no:cacheprovider"]
        argv += ["-q", f"--otval-out={tmp_path / 'out'}", *extra]
        ended = subprocess.run(argv, env=env, cwd=REPOSITORY, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        ledger = tmp_path / "out/ledger/main.jsonl"
        lines = [json.loads(line) for line in ledger.read_text().splitlines()]
        ledger.unlink()
        return [line for line in lines if line["kind"] == "result"], ended.stdout

    return run


def test_a_run_saves_what_its_tasks_ask_for(run_pytest, tmp_path):
    task = task_in(tmp_path)
    for extra in ("--otval-save-runtimes", "--otval-network=none"):
        results, _ = run_pytest(task, extra)
        named = json.loads((task.path / "setup_files" / TASK_JSON).read_text())
        assert [line["runtimes"] for line in results] == [[f"{named['id']}@{named['checksum']}"]] * 2
        assert {line["task_digest"] for line in results} == {task_digest(task.path)}


def test_a_task_that_is_prepared_anew_finds_its_runtime_again(run_pytest, in_workspace, tmp_path):
    task = task_in(tmp_path)
    toml = tmp_path / "set" / "dataset.toml"
    toml.write_text('[dataset]\nname = "org/set" # mine\n')
    (first, _), _ = run_pytest(task, "--otval-save-runtimes")
    assert toml.read_text().startswith('[dataset]\nname = "org/set" # mine\n')
    (task.path / "setup_files" / TASK_JSON).unlink()
    (again, _), _ = run_pytest(task, "--otval-network=none")
    assert again["runtimes"] == first["runtimes"]
    assert again["task_digest"] == first["task_digest"] == task_digest(task.path)
    assert len(list(records(in_workspace))) == 1
    assert main(["runtime", "gc", str(tmp_path / "set"), "--keep-days", "0"]) == 0
    (task.path / "setup_files" / TASK_JSON).unlink()
    assert main(["runtime", "gc", str(tmp_path / "set"), "--keep-days", "0"]) == 0
    assert len(list(records(in_workspace))) == 1


def test_a_dataset_that_cannot_name_its_runtimes_is_told(run_pytest, tmp_path):
    task = task_in(tmp_path)
    (tmp_path / "elsewhere").write_text("")
    (tmp_path / "set" / "dataset.toml").symlink_to(tmp_path / "elsewhere")
    _, said = run_pytest(task, "--otval-save-runtimes")
    assert "dataset.toml is a link: the tasks alone name their runtimes" in " ".join(said.split())
    assert (task.path / "setup_files" / TASK_JSON).exists() and (tmp_path / "elsewhere").read_text() == ""
