"""--otval-offline: what is missing is told before anything starts, and nothing is fetched."""

import json
import os
import shutil
import tarfile

import pytest

from selftests.conftest import REPOSITORY
from selftests.glue.conftest import ids

pytest_plugins = ["pytester"]

DEBIAN = "FROM debian:bookworm-slim\n"
HERE = 'environment = {docker_image = "image.sqfs"}\n'
"""An image that comes with its task."""

both = pytest.mark.parametrize("workers", ["-n0", "-n2"])


@pytest.fixture(autouse=True)
def local(project, monkeypatch):
    """A cluster profile without registries, so that bases are known without asking anybody."""
    text = (REPOSITORY / "clusters" / "local.toml").read_text()
    (project.root / "clusters").mkdir()
    (project.root / "clusters" / "here.toml").write_text(text.replace('["registry", "bootstrap"]', '["bootstrap"]'))
    monkeypatch.setenv("OT_CLUSTER", "here")


@pytest.fixture
def dataset(project):
    """Make a dataset of tasks with these Dockerfiles; None for a task whose image is there."""

    def make(otval="", **dockerfiles):
        folder = project.dataset(tasks={name: {} for name in dockerfiles}, otval=otval)
        for name, text in dockerfiles.items():
            task = folder / "tasks" / name
            (task / "environment").mkdir()
            if text is None:
                (task / "task.toml").write_text(HERE + (task / "task.toml").read_text())
                (task / "image.sqfs").write_bytes(b"hsqs")
            else:
                (task / "environment" / "Dockerfile").write_text(text)
        return folder

    return make


def run(project, workers, *args):
    return project.run(*args) if workers == "-n0" else project.process(workers, *args)


def missing(outcome):
    """The lines about what is missing, without ``missing``."""
    return [line.removeprefix("missing ") for line in outcome.lines if line.startswith("missing ")]


def commands(outcome):
    return [line.rpartition("): ")[2] for line in missing(outcome)]


def packed(folder):
    with tarfile.open(folder / "tasks.tar", "w") as tar:
        for task in (folder / "tasks").iterdir():
            tar.add(task, task.name)
    shutil.rmtree(folder / "tasks")


def build(task):
    return f"pytest datasets/demo/tasks/{task}/task.toml::build"


@both
def test_images_are_told_once_with_the_command_that_makes_them(project, dataset, workers):
    dataset(a=DEBIAN, b=DEBIAN, c=f"{DEBIAN}RUN true\n", d=None)
    outcome = run(project, workers, "datasets/demo", "--otval-offline")
    assert outcome.refusal == (
        "missing: 2 images, and --otval-offline fetches nothing: run the commands above where there is a network"
    )
    assert sorted(commands(outcome)) == [build("a"), build("c")]
    assert any("over bootstrap:bookworm@" in line and "(for a, b): " in line for line in missing(outcome))
    assert project.ledger() == {}, "nothing was asked"


@both
def test_where_nothing_is_missing_the_run_goes_on(project, dataset, workers):
    dataset(a=None, b=None)
    outcome = run(project, workers, "datasets/demo", "--otval-offline")
    assert (outcome.status, missing(outcome)) == (0, [])
    assert outcome.counts == {"passed": 9}


@pytest.mark.parametrize(
    ("args", "names"),
    [
        (["-m", "static"], []),
        (["-k", "(a and static) or (b and noop)"], ["b"]),
        (["--otval-tasks", "c"], ["c"]),
        (["-m", "adversary", "-k", "c"], ["c"]),
        (["--deselect", "datasets/demo/tasks/a/", "--deselect", "datasets/demo/tasks/c/"], ["b"]),
    ],
)
def test_only_what_is_selected_counts(project, dataset, args, names):
    dataset(**{name: f"{DEBIAN}RUN {name}\n" for name in "abc"})
    outcome = project.run("datasets/demo", "--otval-offline", *args)
    assert commands(outcome) == list(map(build, names))
    assert outcome.status == (4 if names else 0)


def test_only_what_workers_selected_counts(project, dataset):
    dataset(a=DEBIAN, b=f"{DEBIAN}RUN true\n")
    outcome = project.process("-n2", "datasets/demo", "--otval-offline", "-k", "(a and static) or (b and noop)")
    assert commands(outcome) == [build("b")]


def test_collecting_lists_too(project, dataset):
    dataset(a=DEBIAN, b=None)
    outcome = project.run("--co", "-q", "-n2", "datasets/demo", "--otval-offline")
    assert (outcome.status, commands(outcome)) == (4, [build("a")])
    assert set(ids("a", "b")) < set(outcome.ids)
    assert not project.runs[-1].exists(), "nothing is written"
    alone = project.run("--co", "-q", "datasets/demo/tasks/b", "--otval-offline")
    assert (alone.status, alone.ids) == (0, ids("b"))


def test_a_base_that_nobody_knows(project, dataset):
    dataset(a="FROM registry.example.org/unknown:1\n")
    outcome = project.run("datasets/demo", "--otval-offline")
    (line,) = missing(outcome)
    assert "registry.example.org/unknown:1" in line
    assert line.endswith(build("a"))


def test_what_is_the_tasks_own_fault_is_for_its_stages(project, dataset):
    dataset(a="FROM debian:bookworm-slim\nCOPY not-there /\n", b="nonsense", c=DEBIAN)
    outcome = project.run("datasets/demo", "--otval-offline")
    assert commands(outcome) == [build("c")]


def test_a_task_that_is_known_not_to_build_needs_no_image(project, dataset):
    bad = '[otval.known_bad.a]\nreason = "x"\nowner = "me"\nexpires = 2100-01-01\nstages = ["build"]'
    dataset(bad, a=DEBIAN, b=DEBIAN + "RUN true\n")
    assert commands(project.run("datasets/demo", "--otval-offline")) == [build("b")]


def test_runtimes(project, dataset):
    folder = dataset(a=None, b=None)
    for name in ("a", "b"):
        (folder / "tasks" / name / "tests").mkdir()
    named = {"id": "tools-0123456789ab", "checksum": "sha256:" + "0" * 64, "path": "/opt/otval/runtimes/tools"}
    (folder / "tasks" / "a" / "tests" / "ot-verifier-runtime.json").write_text(json.dumps(named))
    script = "#!/bin/bash\n. ot-runtime.sh\not_runtime mine || { true && ot_runtime_save; }\n"
    (folder / "tasks" / "b" / "tests" / "test.sh").write_text(script)
    outcome = project.run("datasets/demo", "--otval-offline")
    assert outcome.refusal.startswith("missing: 2 runtimes, ")
    mine, tools = missing(outcome)
    assert mine.endswith(f"(for b): python -m pytest_otval runtime build {folder}/tasks/b")
    assert "has no complete tools-0123456789ab" in tools
    assert "(for a): python -m pytest_otval runtime download REPOSITORY tools-0123456789ab, or " in tools


def test_a_build_needs_no_runtime(project, dataset):
    folder = dataset(a=None)
    (folder / "tasks" / "a" / "tests").mkdir()
    script = "#!/bin/bash\n. ot-runtime.sh\not_runtime mine || { true && ot_runtime_save; }\n"
    (folder / "tasks" / "a" / "tests" / "test.sh").write_text(script)
    alone = project.run("datasets/demo", "--otval-offline", "-m", "build")
    assert (alone.status, missing(alone)) == (0, [])
    assert project.run("datasets/demo", "--otval-offline", "-m", "build or noop").refusal.startswith(
        "missing: 1 runtime, "
    )


def test_of_a_packed_task_no_folder_is_named_that_goes(project, dataset):
    folder = dataset(a=None)
    (folder / "tasks" / "a" / "tests").mkdir()
    script = "#!/bin/bash\n. ot-runtime.sh\not_runtime mine || { true && ot_runtime_save; }\n"
    (folder / "tasks" / "a" / "tests" / "test.sh").write_text(script)
    packed(folder)
    (line,) = missing(project.run("datasets/demo", "--otval-offline", "-m", "noop"))
    assert line.endswith(
        f"(for a): python -m pytest_otval dataset unpack {folder} FOLDER, "
        "python -m pytest_otval runtime build FOLDER/tasks/a, and pack it again"
    )


def test_an_error_of_ours_is_one_line(project, dataset, monkeypatch, tmp_path):
    dataset(a=DEBIAN)
    monkeypatch.setenv("PATH", str(tmp_path))
    refusal = project.run("datasets/demo", "--otval-offline").refusal
    assert refusal.startswith("what is missing cannot be told: missing-tool: ")


@pytest.mark.parametrize("arguments", [["datasets"], ["datasets/demo", "datasets/empty"]])
def test_datasets_that_are_not_fetched(project, dataset, arguments):
    dataset(a=DEBIAN)
    empty = project.dataset("empty", tasks={})
    (empty / "patch.py").touch()
    outcome = project.run(*arguments, "--otval-offline")
    assert outcome.refusal.startswith("missing: 1 dataset and 1 image, ")
    assert missing(outcome)[0] == (
        "dataset: dataset empty is not prepared: run `python datasets/empty/patch.py fetch` and "
        "`python datasets/empty/patch.py prepare`"
    )


def test_a_dataset_that_is_not_fetched_alone(project):
    (project.dataset("empty", tasks={}) / "patch.py").touch()
    assert "patch.py fetch" in project.run("datasets/empty", "--otval-offline").refusal


def test_nothing_is_installed_offline(project, dataset):
    dataset(a=None)
    refusal = project.run("datasets/demo", "--otval-offline", "--otval-save-runtimes").refusal
    assert refusal.startswith("--otval-save-runtimes installs, and --otval-offline fetches nothing")


def test_the_cluster_that_was_chosen_stands_in_commands(project, dataset):
    dataset(a=DEBIAN)
    (project.root / "clusters" / "other.toml").write_text((project.root / "clusters" / "here.toml").read_text())
    outcome = project.run("datasets/demo", "--otval-offline", "--otval-cluster=other")
    assert commands(outcome) == [f"{build('a')} --otval-cluster=other"]


def test_a_machine_without_containers_says_so(project, dataset, monkeypatch):
    monkeypatch.setenv("STUB_TROUBLE", "missing-tool")
    dataset(a=DEBIAN)
    outcome = project.run("datasets/demo", "--otval-offline", "-m", "oracle")
    assert (outcome.status, missing(outcome)) == (8, [])


def test_a_thousand_tasks(project, dataset):
    dataset(**{f"t{number}": f"{DEBIAN}RUN echo {number}\n" for number in range(1000)})
    outcome = project.run("--co", "-qq", "datasets/demo", "--otval-offline")
    assert len(missing(outcome)) == 1000


def test_a_task_that_is_named_by_its_path(project, dataset, tmp_path):
    folder = dataset(a=DEBIAN).rename(tmp_path / "some where")
    outcome = project.run(folder / "tasks" / "a", "--otval-offline")
    assert outcome.refusal.startswith("dataset folder"), "a blank cannot stand in a node id"
    folder = folder.rename(tmp_path / "elsewhere")
    outcome = project.run(f"--rootdir={project.root}", folder / "tasks" / "a", "--otval-offline")
    assert commands(outcome) == [f"pytest {folder}/tasks/a/task.toml::build"]


def test_packed_tasks(project, dataset):
    folder = dataset(a=DEBIAN, b=None)
    packed(folder)
    outcome = project.run("datasets/demo", "--otval-offline")
    assert commands(outcome) == [build("a")]


def test_a_task_that_must_not_be_read(project, dataset):
    folder = dataset(a=DEBIAN, b=None, c=DEBIAN)
    (folder / "tasks" / "b" / "task.toml").write_bytes(b"\xff\x00")
    (folder / "tasks" / "c" / "environment" / "Dockerfile").unlink()
    os.mkfifo(folder / "tasks" / "c" / "environment" / "Dockerfile")
    assert commands(project.run("datasets/demo", "--otval-offline")) == [build("a")]
