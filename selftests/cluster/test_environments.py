import os

import pytest

from pytest_otval.cluster.environments import environments_below
from pytest_otval.core import Conclusion, OtvalUsageError
from pytest_otval.task.pack import pack
from pytest_otval.task.packed.forms import Form

FROM = "FROM debian:12\n"


@pytest.fixture
def write(tmp_path):
    """Write files below tmp_path: ``write({path: text})``."""

    def write(files):
        for path, text in files.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)
        return tmp_path

    return write


def names(*paths, scratch=None):
    found = environments_below(paths, scratch or paths[0] / "scratch")
    return [os.path.relpath(one.name, paths[0]) for one in found]


def asked(environment):
    return [
        (request.context and request.context.name, request.docker_image)
        for request in environment.requests_of_any_run()
    ]


def test_tasks_and_lone_dockerfiles_by_name(write):
    root = write(
        {
            "set/tasks/b/task.toml": "",
            "set/tasks/a/task.toml": "",
            "set/tasks/a/environment/Dockerfile": FROM,
            "set/dataset.toml": "",
            "images/one/Dockerfile": FROM,
            "images/none/text": "",
            ".git/Dockerfile": FROM,
            "z/task.toml": "",
        }
    )
    assert names(root) == ["images/one", "set/tasks/a", "set/tasks/b", "z"]
    assert names(root / "set" / "tasks" / "a") == ["."]
    assert names(root, root / "z", root / "set") == ["images/one", "set/tasks/a", "set/tasks/b", "z"], "each once"


def test_links_lead_to_tasks_and_datasets_alone(write):
    root = write({"far/set/tasks/a/task.toml": "", "far/deep/er/task.toml": "", "here/x/text": ""})
    for name, target in {"set": "far/set", "task": "far/deep/er", "out": "far", "loop": "here", "none": "gone"}.items():
        (root / "here" / name).symlink_to(root / target)
    (root / "here" / "Dockerfile").symlink_to(root / "here" / "x" / "text")
    assert names(root / "here") == ["set/tasks/a", "task"]


def test_deep_folders_and_closed_ones(write):
    root = write({"d/" * 400 + "task.toml": ""})
    assert len(names(root)) == 1
    (root / "fifo").mkdir()
    os.mkfifo(root / "fifo" / "Dockerfile")
    assert len(names(root)) == 1


def test_a_file_is_no_folder(write):
    root = write({"task.toml": ""})
    with pytest.raises(OtvalUsageError, match="is no folder"):
        names(root / "task.toml")


def test_packed_tasks_are_unpacked_one_at_a_time(write, tmp_path):
    write({f"set/tasks/{name}/environment/Dockerfile": FROM for name in "ab"})
    write({f"set/tasks/{name}/task.toml": "" for name in "ab"})
    pack(tmp_path / "set", Form.TAR, tmp_path / "packed" / "set")
    scratch, seen = tmp_path / "scratch", []
    for one in environments_below([tmp_path / "packed"], scratch):
        assert asked(one) == [("environment", None)]
        seen.append(os.path.relpath(one.name, tmp_path))
        assert len(list((scratch / "set").iterdir())) == 1
    assert seen == ["packed/set/tasks/a", "packed/set/tasks/b"]
    assert list((scratch / "set").iterdir()) == []


def test_shards_of_a_dataset_are_taken_once(write, tmp_path):
    write({f"set/tasks/{name}/task.toml": "" for name in "ab"})
    pack(tmp_path / "set", Form.PARQUET, tmp_path / "packed" / "set")
    (file,) = (tmp_path / "packed" / "set").glob("*.parquet")
    (file.parent / "data").mkdir()
    file.rename(file.parent / "data" / "part-1.parquet")
    write({"packed/set/dataset.toml": ""})
    assert names(tmp_path / "packed") == ["set/tasks/a", "set/tasks/b"]


def test_a_dataset_without_tasks_is_its_prepared_form(write, tmp_path, monkeypatch):
    write({"checkout/datasets/mine/dataset.toml": "", "ws/datasets/mine/tasks/a/task.toml": ""})
    mine = tmp_path / "checkout" / "datasets" / "mine"
    monkeypatch.setenv("OT_WORKSPACE", str(tmp_path / "ws"))
    (one,) = environments_below([mine], tmp_path)
    assert one.name == str(tmp_path / "ws" / "datasets" / "mine" / "tasks" / "a")
    monkeypatch.setenv("OT_WORKSPACE", str(tmp_path / "elsewhere"))
    assert names(mine) == []


SEPARATE = '[environment]\ndocker_image = "debian:12"\n[verifier]\nenvironment_mode = "separate"\n'


def test_requests_of_a_task_are_each_once(write):
    root = write({"a/task.toml": SEPARATE, "a/environment/Dockerfile": FROM, "a/tests/Dockerfile": FROM})
    (one,) = environments_below([root], root)
    assert asked(one) == [("environment", "debian:12"), ("tests", None), ("environment", None)]
    assert [request.docker_image for request in one.requests()] == ["debian:12", None]


def test_verifier_that_shares_the_image_asks_for_no_other(write):
    root = write({"a/task.toml": '[verifier]\nenvironment_mode = "separate"\n', "a/environment/Dockerfile": FROM})
    (one,) = environments_below([root], root)
    assert asked(one) == [("environment", None)]


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"task.toml": "x"}, "bad-task"),
        ({"task.toml": "", "environment/docker-compose.yaml": ""}, "compose"),
        ({"task.toml": '[environment]\nos = "windows"\n'}, "windows"),
    ],
)
def test_tasks_that_ask_for_nothing(write, files, reason):
    root = write({f"a/{path}": text for path, text in files.items()})
    (one,) = environments_below([root], root)
    with pytest.raises(Conclusion) as caught:
        one.requests()
    assert caught.value.reason == reason


def test_gpus_are_this_machines_matter(write):
    root = write({"a/task.toml": "[environment]\ngpus = 8\n", "a/environment/Dockerfile": FROM})
    (one,) = environments_below([root], root)
    assert asked(one) == [("environment", None)]


def test_lone_dockerfile(write):
    root = write({"a/Dockerfile": FROM})
    (one,) = environments_below([root], root)
    assert asked(one) == [("a", None)]
