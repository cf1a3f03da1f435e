"""What the plugin costs runs that only list, or have nothing to do with tasks."""

import json
import subprocess
import sys

import pytest

from pytest_otval.ledger import read_run
from selftests.test_layers import HEAVY

pytest_plugins = ["pytester"]

LIST_MODULES = """
import json, sys
import pytest
status = pytest.main(sys.argv[1:])
print("\\n" + json.dumps([int(status), sorted({name.partition(".")[0] for name in sys.modules})]))
"""


@pytest.mark.parametrize("args", [["--co", "datasets/demo"], ["test_plain.py"]])
def test_nothing_heavy_is_imported(project, args):
    project.dataset()
    project.pytester.makepyfile(test_plain="def test_one(): pass\n")
    options = ["-p", "no:hypothesispytest", "-p", "no:html"]
    done = subprocess.run(
        [sys.executable, "-c", LIST_MODULES, *options, *args], capture_output=True, text=True, check=True
    )
    status, modules = json.loads(done.stdout.splitlines()[-1])
    assert status == 0
    assert "pytest_otval" in modules
    assert not HEAVY & set(modules)


def test_ordinary_runs_need_no_workspace(project, monkeypatch):
    monkeypatch.delenv("OT_WORKSPACE")
    project.pytester.makepyfile(test_plain="def test_one(): pass\n")
    outcome = project.run("test_plain.py")
    assert outcome.status == 0
    assert not any("otval:" in line or "ledger" in line for line in outcome.lines)
    assert project.process("-n1", "test_plain.py").status == 0


def test_workers_have_the_rootdir_of_the_controller(project, tmp_path):
    """pytest takes the value of --otval-out for an argument, which counts when the folder is there."""
    out = tmp_path / "out"
    project.dataset()
    project.pytester.makepyfile(test_plain="def test_one(): pass\n")
    project.pytester.makeconftest(f"import os\ndef pytest_sessionstart(): os.makedirs({str(out)!r}, exist_ok=True)\n")
    outcome = project.process("-v", "-n2", "--otval-out", out, "datasets/demo", "test_plain.py")
    assert outcome.status == 0
    assert any(line.endswith(" PASSED test_plain.py::test_one ") for line in outcome.lines), outcome.lines


def test_stages_are_known_marks(project):
    project.dataset()
    assert project.collect("--strict-markers", "datasets/demo/tasks/a", "-m", "noop") != []
    assert any(line.startswith("@pytest.mark.oracle") for line in project.run("--markers").lines)


def test_listing_writes_nothing(project):
    project.dataset()
    project.collect("datasets/demo")
    assert not (project.workspace / "runs").exists()


@pytest.mark.parametrize("option", ["-p no:xdist", "-p no:html", "-p no:cacheprovider", "-p no:terminal"])
def test_runs_without_other_plugins(project, option):
    project.dataset()
    outcome = project.process(*option.split(), "datasets/demo")
    assert outcome.status == 0, outcome.errors
    assert len(project.ledger()) == 9


def test_the_header_names_the_workspace(project, monkeypatch):
    project.dataset()
    monkeypatch.setenv("OT_CLUSTER", "local")
    lines = project.run("datasets/demo").lines
    assert f"otval: workspace {project.workspace}, cluster local" in lines


def test_a_wrong_cluster_is_refused(project):
    project.dataset()
    assert "nowhere" in project.run("datasets/demo", "--otval-cluster", "nowhere").refusal


def test_a_run_folder_that_cannot_be_written_is_refused(project):
    project.dataset()
    (project.root / "file").touch()
    assert "cannot be written" in project.run("datasets/demo", "--otval-out", "file/run").refusal


def test_an_image_source_that_no_plugin_gives_is_refused(project):
    project.dataset()
    (project.root / "clusters").mkdir()
    (project.root / "clusters/site.toml").write_text('image_sources = ["registry", "shelf"]\n')
    refusal = project.run("datasets/demo", "--otval-cluster", "site").refusal
    assert refusal == "cluster profile site: no image source 'shelf'; plugins give registry, bootstrap"


def test_run_json_has_all_settings(project):
    project.dataset()
    project.run("datasets/demo", "--otval-timeout-multiplier", "2", "--otval-limit", "1", "-m", "static")
    run = read_run(project.runs[-1])
    assert run["settings"]["timeout_multiplier"] == 2.0
    assert (run["run_settings"]["limit"], run["run_settings"]["out"]) == (1, str(project.runs[-1]))
