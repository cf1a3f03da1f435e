"""--otval-offline with real containers, on a machine without a network."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_otval.workspace import Workspace
from selftests.conftest import REPOSITORY
from selftests.fakes import make_task

pytestmark = pytest.mark.integration


@pytest.fixture
def project(real, image, tmp_path):
    """A task over the base in the store, which another store does not have yet."""
    (tmp_path / "clusters").mkdir()
    text = (REPOSITORY / "clusters" / "local.toml").read_text()
    local = text.replace('["registry", "bootstrap"]', '["bootstrap"]')
    (tmp_path / "clusters" / "here.toml").write_text(local)
    (tmp_path / "pytest.ini").touch()
    (tmp_path / "datasets").mkdir()
    solve, test = "echo 42 >/made/answer", "test -f /made/answer && echo 1 >$REWARD || echo 0 >$REWARD"
    task = make_task(tmp_path, solve, test.replace("$REWARD", "/logs/verifier/reward.txt"))
    (task.path / "environment" / "Dockerfile").write_text("FROM debian:bookworm-slim\nRUN mkdir /made\n")
    (tmp_path / "set").rename(tmp_path / "datasets" / "set")
    return tmp_path


def run(project, *args, network=True):
    words = [sys.executable, "-P", "-m", "pytest", "-q", *args]
    variables = {
        **os.environ,
        "OT_WORKSPACE": str(project / "workspace"),
        "OT_CLUSTER": "here",
        "PYTHONPATH": str(Path(__file__).parent),
    }
    if not network:
        # Others than root cannot leave the network without leaving their uids behind, too.
        words = ["unshare", "--net", *words] if os.getuid() == 0 else [*words, "-p", "otval_no_network"]
    done = subprocess.run(words, cwd=project, env=variables, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_without_a_network(project, image):
    (project / "workspace").mkdir()
    task = "datasets/set/tasks/task"
    status, text = run(project, task, "--otval-offline", network=False)
    assert status == 4, text
    assert f"(for task): pytest {task}/task.toml::build\n" in text

    # The base was got before.
    store = Workspace(project / "workspace").images
    for file in image.files:
        for path in (file, file.with_suffix(".json")):
            shutil.copy2(path, store)
    status, text = run(project, f"{task}/task.toml::build")
    assert status == 0, text

    status, text = run(project, task, "--otval-offline", network=False)
    assert status == 0, text
    assert "4 passed" in text
