import os
import stat

import pytest

from pytest_otval.core import OtvalUsageError
from pytest_otval.workspace import Workspace, default_cluster, scratch


def test_workspace_of_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("OT_WORKSPACE", str(tmp_path))
    workspace = Workspace.from_environment()
    assert (workspace.images, workspace.datasets, workspace.runs) == (
        tmp_path / "images",
        tmp_path / "datasets",
        tmp_path / "runs",
    )


def test_relative_workspace_becomes_absolute(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    monkeypatch.setenv("OT_WORKSPACE", "here")
    assert Workspace.from_environment().root == tmp_path / "here"


@pytest.mark.parametrize("value", ["", "/no/such/folder"])
def test_missing_workspace_says_what_to_do(monkeypatch, value):
    monkeypatch.setenv("OT_WORKSPACE", value)
    with pytest.raises(OtvalUsageError, match=r"setup\.sh") as caught:
        Workspace.from_environment()
    assert "\n" not in str(caught.value)


def test_scratch_is_private_to_the_user(monkeypatch, tmp_path):
    monkeypatch.setenv("OT_SCRATCH", str(tmp_path / "new"))
    folder = scratch()
    assert folder == tmp_path / "new" / f"otval-{os.getuid()}"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert scratch() == folder


def test_scratch_of_the_environment_comes_before_the_profile(monkeypatch, tmp_path):
    monkeypatch.setenv("NODE_DISK", str(tmp_path / "disk"))
    monkeypatch.delenv("OT_SCRATCH", raising=False)
    assert scratch("$NODE_DISK/x").parent == tmp_path / "disk" / "x"
    monkeypatch.setenv("OT_SCRATCH", str(tmp_path / "ours"))
    assert scratch("$NODE_DISK/x").parent == tmp_path / "ours"


def test_scratch_that_is_a_link_is_refused(monkeypatch, tmp_path):
    """On a shared /tmp somebody else may have been there first."""
    monkeypatch.setenv("OT_SCRATCH", str(tmp_path))
    (tmp_path / "theirs").mkdir()
    (tmp_path / f"otval-{os.getuid()}").symlink_to("theirs")
    with pytest.raises(OtvalUsageError, match="OT_SCRATCH"):
        scratch()


def test_the_cache_of_runtimes_may_lie_elsewhere(tmp_path, monkeypatch):
    monkeypatch.delenv("OT_RUNTIME_CACHE", raising=False)
    assert Workspace(tmp_path).runtimes == tmp_path / "runtimes"
    monkeypatch.setenv("OT_RUNTIME_CACHE", str(tmp_path / "elsewhere"))
    assert Workspace(tmp_path).runtimes == tmp_path / "elsewhere"


def test_the_cluster_that_set_up_wrote_is_the_usual_one(monkeypatch):
    monkeypatch.delenv("OT_CLUSTER", raising=False)
    assert default_cluster() == "local"
    monkeypatch.setenv("OT_CLUSTER", "")
    assert default_cluster() == "local"
    monkeypatch.setenv("OT_CLUSTER", "elsewhere")
    assert default_cluster() == "elsewhere"
