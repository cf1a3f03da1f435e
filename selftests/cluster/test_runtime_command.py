"""``python -m pytest_otval runtime``: what needs the cache alone."""

import json
import os
import shutil
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest

from pytest_otval.__main__ import main
from pytest_otval.cluster import runtime_cache
from pytest_otval.core import Conclusion
from pytest_otval.runtimes.record import Package, Reference, write_record, write_reference
from pytest_otval.runtimes.store import Runtimes
from pytest_otval.task.dataset import dataset_folder
from pytest_otval.task.pack import pack
from pytest_otval.task.packed.forms import Form
from pytest_otval.task.packed.tar import TarSource
from selftests.fakes import make_task
from selftests.runtimes.made import put


@pytest.fixture
def runtimes(tmp_path, monkeypatch):
    (tmp_path / "workspace" / "datasets").mkdir(parents=True)
    monkeypatch.setenv("OT_WORKSPACE", str(tmp_path / "workspace"))
    monkeypatch.setenv("OT_RUNTIME_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return Runtimes(tmp_path / "cache")


def damage(runtimes, runtime):
    file = runtimes.file(runtime)
    file.chmod(0o644)
    file.write_bytes(b"x" * runtime.bytes)


def test_an_empty_cache_lists_recipes(runtimes, capsys):
    assert main(["runtime", "list"]) == 0
    assert "python-verifier: not built: python -m pytest_otval runtime build python-verifier" in capsys.readouterr().out
    assert main(["runtime", "verify"]) == 0


def test_list_and_show(runtimes, capsys):
    runtime = put(runtimes)
    assert main(["runtime", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [one["checksum"] for one in listed["runtimes"]] == [runtime.checksum]
    assert listed["recipes_not_built"] == ["node-verifier", "python-verifier"]
    for name in ("tools", runtime.id, runtime.checksum[:8]):
        assert main(["runtime", "show", name]) == 0
        assert runtime.checksum in capsys.readouterr().out
    assert main(["runtime", "show", "tools", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["base"] == "bootstrap:fake@0"


def test_nothing_of_a_manifest_reaches_the_terminal_raw(runtimes, capsys):
    runtime = put(runtimes)
    evil = "\x1b[2J\ud800"
    packages, files = {"pip": {evil: Package(evil, evil)}}, {evil: "a" * 64}
    write_record(runtimes.cache, replace(runtime, base=evil, base_key=evil, packages=packages, files=files))
    assert main(["runtime", "list"]) == 0
    assert main(["runtime", "show", "tools", "--files"]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out and out.count("x1b[2J") == 7


def test_show_of_none_and_of_several(runtimes, capsys):
    put(runtimes, "tools-a"), put(runtimes, "tools-b")
    assert main(["runtime", "show", "none"]) == 1
    assert main(["runtime", "show", "tools"]) == 1
    said = capsys.readouterr().err
    assert "has no runtime none" in said
    assert "has several tools: tools-a-000000000000, tools-b-000000000000" in said


def test_verify_says_and_removes_what_is_not_right(runtimes, capsys):
    right, wrong = put(runtimes, "right"), put(runtimes, "wrong")
    damage(runtimes, wrong)
    old, young = (runtimes.cache / f"{one * 64}.sqfs" for one in "01")
    old.touch(), young.touch(), (runtimes.cache / f"{'2' * 64}.lock").touch()
    os.utime(old, (0, 0))
    assert main(["runtime", "verify"]) == 1
    said = capsys.readouterr()
    assert "does not match its checksum" in said.out and said.err == "4 runtimes, 3 not right\n"
    assert main(["runtime", "verify", "right"]) == 0
    assert main(["runtime", "verify", "--remove"]) == 1
    assert "kept, since it may be about to be published" in capsys.readouterr().out
    assert young.exists(), "somebody may be about to write its manifest"
    os.utime(young, (0, 0))
    assert main(["runtime", "verify", "--remove"]) == 1
    left = sorted(path.name for path in runtimes.cache.iterdir() if path.suffix != ".lock")
    assert left == [f"{right.checksum}.json", f"{right.checksum}.sqfs"]


def test_garbage_is_what_no_task_names(runtimes, tmp_path, capsys):
    named, other = put(runtimes, "named"), put(runtimes, "other")
    task = make_task(tmp_path)
    write_reference(task.path / "tests" / "ot-verifier-runtime.json", Reference.of(named))
    words = ["runtime", "gc", str(tmp_path / "set"), "--keep-days", "0"]
    assert main([*words, "--dry-run"]) == 0
    assert "1 runtimes" in capsys.readouterr().out and runtimes.file(other).exists()
    assert main(words) == 0
    assert not runtimes.file(other).exists() and runtimes.file(named).exists()
    assert main(words[:3]) == 0


def test_what_a_packed_dataset_names_stays(runtimes, tmp_path):
    """Both its tasks and its dataset.toml name runtimes."""
    named, listed = put(runtimes, "named"), put(runtimes, "listed")
    task = make_task(tmp_path)
    write_reference(task.path / "tests" / "ot-verifier-runtime.json", Reference.of(named))
    toml = f'[dataset]\nname = "org/set"\n[otval.runtimes]\n{listed.id} = "sha256:{listed.checksum}"\n'
    (tmp_path / "set" / "dataset.toml").write_text(toml)
    pack(tmp_path / "set", Form.TAR, tmp_path / "packed" / "set")
    assert main(["runtime", "gc", str(tmp_path / "packed"), "--keep-days", "0"]) == 0
    assert runtimes.file(named).exists() and runtimes.file(listed).exists()


def spoil_json(task):
    (task.path / "tests" / "ot-verifier-runtime.json").write_text("{")


def spoil_toml(task):
    (dataset_folder(task.path) / "dataset.toml").write_text("[otval")


def misspell(task):
    (dataset_folder(task.path) / "dataset.toml").write_text('[dataset]\nname = "org/set"\n[otval.runtimse]\n')


def no_space(task):
    """The task is packed, and cannot be unpacked."""
    dataset = dataset_folder(task.path)
    pack(dataset, Form.TAR, dataset.with_name("packed"))
    shutil.rmtree(dataset)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (spoil_json, "names no runtime"),
        (spoil_toml, "ds-parse"),
        (misspell, "ds-unknown-field"),
        (no_space, "host-disk-full: x"),
    ],
)
def test_what_cannot_be_read_may_name_all_so_nothing_goes(runtimes, tmp_path, capsys, monkeypatch, spoil, said):
    runtime = put(runtimes)
    spoil(make_task(tmp_path))

    def full(*_):
        raise Conclusion("host-disk-full", "x")

    monkeypatch.setattr(TarSource, "folder", full)
    assert main(["runtime", "gc", str(tmp_path), "--keep-days", "0"]) == 4
    err = capsys.readouterr().err
    assert said in err and "1 tasks or datasets cannot be read, so nothing is removed" in err
    assert runtimes.file(runtime).exists()


def test_without_any_task_nothing_goes(runtimes, tmp_path, capsys):
    runtime = put(runtimes)
    (tmp_path / "empty").mkdir()
    assert main(["runtime", "gc", str(tmp_path / "empty"), "--keep-days", "0"]) == 4
    assert "there is no task" in capsys.readouterr().err
    assert runtimes.file(runtime).exists()


def test_build_of_what_is_neither_recipe_nor_task(runtimes, capsys):
    assert main(["runtime", "build", "none"]) == 4
    assert "neither a task's folder nor a recipe; recipes: node-verifier, python-verifier" in capsys.readouterr().err


def test_build_names_the_file_of_what_an_installation_said(runtimes, tmp_path, capsys, monkeypatch):
    def ensure(installation, log, anew):
        log.parent.mkdir(parents=True)
        log.write_text("installing")
        raise Conclusion("setup-failed", "install.sh ended with status 1")

    machine = SimpleNamespace(installer=SimpleNamespace(ensure=ensure))
    monkeypatch.setattr(runtime_cache, "load_profile", lambda cluster: None)
    monkeypatch.setattr(runtime_cache, "probe_flavour", lambda workspace, profile: ("userns", []))
    monkeypatch.setattr(runtime_cache, "opened_machine", lambda *_: nullcontext(machine))
    monkeypatch.setattr(runtime_cache, "by_recipe", lambda machine, recipe: None)
    assert main(["runtime", "build", "python-verifier"]) == 1
    log = tmp_path / "workspace" / "cache" / "runtimes" / "python-verifier.log"
    assert log.read_text() == "installing"
    assert f"what the installation said: {log}" in capsys.readouterr().err
