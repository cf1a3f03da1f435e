"""What jobs take along: an environment that works anywhere, and tasks as they are."""

import importlib.metadata
import json
import os
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest

import pytest_otval
from pytest_otval.cluster import packing
from pytest_otval.cluster.bootstrap import unpack
from pytest_otval.cluster.packing import base_interpreter, pack_dataset, pack_environment
from pytest_otval.cluster.staging import StagingError, copy
from pytest_otval.core import OtvalUsageError
from pytest_otval.task.digest import task_digest
from pytest_otval.task.pack import pack
from pytest_otval.task.packed.forms import Form
from pytest_otval.task.source import source_of


@pytest.fixture
def small(monkeypatch):
    """Let the environment be small: our package, pytest, and what that needs."""
    names = ("pytest-otval", "pytest", "pluggy", "iniconfig", "packaging", "pygments")
    monkeypatch.setattr(packing, "_needed", lambda: [importlib.metadata.distribution(name) for name in names])


def test_an_environment_works_where_it_is_unpacked(small, tmp_path):
    packed = pack_environment(tmp_path / "cache")
    unpack(Path(packed.path), packed.sha256, tmp_path / "node" / "env")
    env = tmp_path / "node" / "env"
    script = "import sys, pytest, pytest_otval; print(sys.prefix, pytest_otval.__file__, pytest.__file__)"
    told = subprocess.run(
        [env / "bin" / "python", "-P", "-c", script], capture_output=True, text=True, check=True, env={}, cwd="/"
    ).stdout.split()
    assert told[0] == str(env) and all(Path(path).is_relative_to(env / "lib") for path in told[1:])
    assert (env / "bin" / "python").resolve() == base_interpreter()
    assert "glue.start" in (env / "bin" / "pytest").read_text()
    version = subprocess.run([env / "bin" / "pygmentize", "-V"], capture_output=True, check=False, env={})
    assert version.returncode in (0, 1), version.stderr
    assert importlib.metadata.version("pytest-otval")
    points = list((env / "lib").rglob("pytest_otval-*.dist-info/entry_points.txt"))
    assert len(points) == 1 and "pytest11" in points[0].read_text()


def test_nothing_in_it_names_where_it_came_from(small, tmp_path):
    packed = pack_environment(tmp_path)
    with tarfile.open(packed.path) as archive:
        starts = [member for member in archive.getmembers() if member.name.startswith("bin/") and member.isreg()]
        for member in starts:
            content = archive.extractfile(member)
            assert os.fsencode(sys.prefix) not in content.read(200), member.name
        assert not [name for name in archive.getnames() if "__editable__" in name]


def test_an_environment_is_packed_once_for_each_content(small, tmp_path, monkeypatch):
    first = pack_environment(tmp_path)
    written = Path(first.path).stat().st_mtime_ns
    assert pack_environment(tmp_path) == first
    assert Path(first.path).stat().st_mtime_ns == written
    module = tmp_path / "own_plugin.py"
    module.write_text("VALUE = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(sys.modules, "own_plugin", __import__("own_plugin"))
    other = pack_environment(tmp_path, ["own_plugin"])
    assert other.path != first.path
    with tarfile.open(other.path) as archive:
        assert [name for name in archive.getnames() if name.endswith("site-packages/own_plugin.py")]


def test_an_archive_that_was_cut_off_is_made_again(small, tmp_path):
    first = pack_environment(tmp_path)
    os.truncate(first.path, 1000)
    assert pack_environment(tmp_path) == first
    assert Path(first.path).stat().st_size == first.bytes


def test_archives_that_nobody_asks_for_go(small, tmp_path):
    for name, age in (("old", packing.UNUSED_SECONDS + 60), ("young", 60)):
        for file in (tmp_path / f"{name}.json", tmp_path / f"{name}.tar.gz"):
            file.write_text("{}")
            os.utime(file, (time.time() - age,) * 2)
    packed = pack_environment(tmp_path)
    assert {path.name.partition(".")[0] for path in tmp_path.iterdir()} == {"young", Path(packed.path).name[:16]}


def test_a_plugin_without_a_file_is_refused(small, tmp_path):
    with pytest.raises(OtvalUsageError, match="'sys' has no file"):
        pack_environment(tmp_path, ["sys"])


def test_all_that_our_package_requires_is_there():
    names = {one.metadata["Name"].lower() for one in packing._needed()}
    assert {"pytest-otval", "pytest", "pytest-xdist", "pydantic", "pydantic-core", "submitit", "execnet"} <= {
        name.replace("_", "-") for name in names
    }
    assert "mypy" not in names and "ruff" not in names
    assert pytest_otval.__name__ == "pytest_otval"


def test_a_damaged_archive_is_told(small, tmp_path):
    packed = pack_environment(tmp_path / "cache")
    with pytest.raises(ValueError, match="does not match its checksum"):
        unpack(Path(packed.path), "0" * 64, tmp_path / "env")


def dataset(folder, tasks):
    for task in tasks:
        (folder / "tasks" / task / "tests").mkdir(parents=True)
        (folder / "tasks" / task / "task.toml").write_text("[agent]\n")
        (folder / "tasks" / task / "tests" / "test.sh").write_text(f"#!/bin/bash\necho {task}\n")
        (folder / "tasks" / task / "tests" / "test.sh").chmod(0o755)
    (folder / "dataset.toml").write_text('[dataset]\nname = "org/demo"\n')
    return folder


def test_exactly_the_tasks_of_a_run_are_packed_and_are_the_same(tmp_path):
    folder = dataset(tmp_path / "datasets" / "demo", "abc")
    files = pack_dataset(folder, ["a", "c"], tmp_path / "packed" / "demo")
    for one in files:
        copy(one, tmp_path / "node" / "demo")
    source = source_of(tmp_path / "node" / "demo")
    assert source.names()[0] == ["a", "c"]
    there = source.folder("a", tmp_path / "scratch")
    assert task_digest(there) == task_digest(folder / "tasks" / "a")
    assert (tmp_path / "node" / "demo" / "dataset.toml").read_text() == (folder / "dataset.toml").read_text()


@pytest.mark.parametrize("form", list(Form))
def test_packed_tasks_are_taken_as_they_are(tmp_path, form):
    folder = dataset(tmp_path / "datasets" / "demo", "ab")
    pack(folder, form, tmp_path / "ready" / "demo")
    files = pack_dataset(tmp_path / "ready" / "demo", ["a"], tmp_path / "packed")
    assert not (tmp_path / "packed").exists()
    for one in files:
        copy(one, tmp_path / "node" / "demo")
    assert source_of(tmp_path / "node" / "demo").names()[0] == ["a", "b"]


def test_a_file_that_changed_meanwhile_is_not_used(tmp_path):
    folder = dataset(tmp_path / "datasets" / "demo", "a")
    *_, tasks = pack_dataset(folder, ["a"], tmp_path / "packed")
    with Path(tasks.path).open("r+b") as file:
        file.seek(600)
        file.write(b"x")
    with pytest.raises(StagingError, match="does not match its checksum"):
        copy(tasks, tmp_path / "node")
    Path(tasks.path).unlink()
    with pytest.raises(StagingError, match="No such file"):
        copy(tasks, tmp_path / "other")


def test_what_is_written_down_is_plain(tmp_path, small):
    packed = pack_environment(tmp_path)
    assert json.loads(Path(packed.path).with_suffix("").with_suffix(".json").read_text())["sha256"] == packed.sha256
