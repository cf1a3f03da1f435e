"""``python -m pytest_otval dataset``."""

import pytest

from pytest_otval.__main__ import main
from selftests.task.packed.helpers import rows, tar


@pytest.fixture
def folders(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "set/tasks/a").mkdir(parents=True)
    (tmp_path / "set/tasks/a/task.toml").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("form", "name"), [("parquet", "tasks.parquet"), ("tar", "tasks.tar"), ("squashfs", "tasks.sqfs")]
)
def test_pack_and_unpack(folders, capsys, form, name):
    assert main(["dataset", "pack", "set", "--to", form, "packed/set"]) == 0
    assert capsys.readouterr().out.startswith(f"packed/set/{name}: 1 tasks, 0.0 MB")
    assert main(["dataset", "unpack", "packed/set", "back/set"]) == 0
    assert capsys.readouterr().out == "back/set/tasks: 1 tasks\n"
    assert (folders / "back/set/tasks/a/task.toml").is_file()


def test_what_is_left_out_is_told_by_the_status_too(folders, capsys):
    rows(folders / "bad/tasks.parquet", [("a", tar("../x")), ("b", tar("task.toml"))])
    assert main(["dataset", "unpack", "bad", "out"]) == 1
    assert capsys.readouterr().err == "left out: task 'a': ../x has .. in its path\n"
    assert [path.name for path in (folders / "out/tasks").iterdir()] == ["b"]


def test_wrong_usage_is_one_line(folders, capsys):
    for argv in (
        ["pack", "nowhere", "--to", "tar", "out"],
        ["unpack", "set", "out"],
        ["pack", "set", "--to", "tar", "set"],
    ):
        assert main(["dataset", *argv]) == 4
        assert capsys.readouterr().err.startswith("error: ")
