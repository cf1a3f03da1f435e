"""The first program of a job, before anything of ours is there."""

import json
import os
import subprocess
import sys
from pathlib import Path

from pytest_otval.cluster import bootstrap
from pytest_otval.cluster.bootstrap import FAILED, PREFIX, own_folder


def test_it_needs_the_standard_library_alone(tmp_path):
    script = f"import runpy, sys; runpy.run_path({bootstrap.__file__!r}); print(*sys.modules)"
    told = subprocess.run([sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=True).stdout
    assert "site" not in told.split() and "pytest_otval" not in told.split()


def test_what_killed_jobs_left_goes(tmp_path):
    dead = subprocess.Popen(["true"])
    dead.wait()
    for name in (f"{PREFIX}{dead.pid}-abc", f"{PREFIX}{os.getpid()}-def", f"{PREFIX}other-x", "somebody-elses"):
        (tmp_path / name / "env").mkdir(parents=True)
    folder = own_folder(tmp_path)
    assert folder.is_dir() and folder.name.startswith(f"{PREFIX}{os.getpid()}-")
    left = {path.name for path in tmp_path.iterdir()} - {folder.name}
    assert left == {f"{PREFIX}{os.getpid()}-def", f"{PREFIX}other-x", "somebody-elses"}


def run(folder, environment):
    (folder / "run").mkdir()
    (folder / "tmp").mkdir()
    (folder / "run" / "staging.json").write_text(json.dumps({"environment": environment}))
    argv = [sys.executable, "-I", bootstrap.__file__, str(folder / "run"), "0"]
    variables = {"TMPDIR": str(folder / "tmp"), "SLURMD_NODENAME": "n7"}
    return subprocess.run(argv, capture_output=True, text=True, check=False, env=variables)


def test_an_archive_that_cannot_be_read_is_told_with_the_node(tmp_path):
    ended = run(tmp_path, {"path": str(tmp_path / "none.tar.gz"), "sha256": "0"})
    assert ended.returncode == FAILED
    assert ended.stderr.startswith("otval: n7: the Python environment could not be unpacked: ")
    assert len(ended.stderr.splitlines()) == 1
    assert list((tmp_path / "tmp").iterdir()) == []


def test_an_archive_that_was_cut_off_is_told(tmp_path):
    archive = tmp_path / "cut.tar.gz"
    archive.write_bytes(b"\x1f\x8b\x08\x00")
    ended = run(tmp_path, {"path": str(archive), "sha256": "0"})
    assert ended.returncode == FAILED and "could not be unpacked" in ended.stderr


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "staging.json").write_text("{}")
    argv = [sys.executable, "-I", bootstrap.__file__, str(tmp_path / "run"), "0"]
    ended = subprocess.run(argv, capture_output=True, text=True, check=False, env={"TMPDIR": str(Path(tmp_path / "x"))})
    assert ended.returncode == FAILED and "could not be unpacked" in ended.stderr
