"""Which files are packed tasks, told without reading them."""

import os

import pyarrow
import pytest
from pyarrow import parquet

from pytest_otval.task.index import enclosing_dataset, is_dataset, is_prepared, packed_around, tasks_folder
from pytest_otval.task.packed.forms import Form, folder_of, names_our_columns, packed_files
from selftests.task.packed.helpers import rows


def other(file):
    file.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pyarrow.table({"x": ["task"]}), file)
    return file


def touch(file):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()
    return file


def ours(file):
    return rows(file, [("a", b"")])


PACKED = [
    (ours, "tasks.parquet", Form.PARQUET),
    (ours, "data/train-00000-of-00001.parquet", Form.PARQUET),
    (touch, "tasks.tar", Form.TAR),
    (touch, "tasks.sqfs", Form.SQUASHFS),
]


@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize(("make", "name", "form"), PACKED)
def test_a_folder_with_a_packed_file_is_a_dataset(tmp_path, make, name, form, marked):
    folder = tmp_path / "set"
    file = make(folder / name)
    if marked:
        touch(folder / "dataset.toml")
    assert packed_files(folder) == {form: [file]}
    assert is_dataset(folder)
    assert is_prepared(folder)
    assert tasks_folder(folder) == folder / "tasks"
    assert folder_of(file) == folder
    for path in (folder, file, folder / "tasks", folder / "tasks/a", folder / "tasks/a/task.toml"):
        assert enclosing_dataset(path) == folder
    assert packed_around(folder / "tasks/a/task.toml") == folder
    assert packed_around(folder / "tasks") == folder
    assert packed_around(folder) is None
    assert packed_around(folder / "task/a") is None


def test_a_link_to_a_file_counts_and_what_is_none_does_not(tmp_path):
    folder = tmp_path / "set"
    (folder / "data").mkdir(parents=True)
    (folder / "data/0.parquet").symlink_to(ours(tmp_path / "cache/blob"))
    for name in ("tasks.tar", "tasks.sqfs", "pipe.parquet"):
        os.mkfifo(folder / name)
    (folder / "folder.parquet").mkdir()
    (folder / "broken.parquet").symlink_to("nowhere")
    ours(folder / ".hidden.parquet")
    assert packed_files(folder) == {Form.PARQUET: [folder / "data/0.parquet"]}
    assert is_dataset(folder)
    assert folder_of(folder / "tasks.tar") is None


@pytest.mark.parametrize("name", ["data/results.parquet", "results.parquet"])
def test_data_of_other_people_makes_no_dataset(tmp_path, name):
    file = other(tmp_path / name)
    assert not names_our_columns(file)
    assert not is_dataset(tmp_path)
    assert enclosing_dataset(file) is None
    assert enclosing_dataset(tmp_path / "tasks/a") is None
    touch(tmp_path / "dataset.toml")
    assert not is_prepared(tmp_path)
    assert tasks_folder(tmp_path) == tmp_path


def test_in_a_dataset_a_wrong_file_counts_so_that_it_is_told(tmp_path):
    touch(tmp_path / "shard.parquet").write_bytes(b"PAR1 no more")
    assert not is_prepared(tmp_path)
    touch(tmp_path / "dataset.toml")
    assert is_prepared(tmp_path)
    (tmp_path / "shard.parquet").unlink()
    other(tmp_path / "tasks.parquet")
    assert is_prepared(tmp_path)


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1\0\0\0\0PAR1", b"\xff\xff\xff\xffPAR1", b"x" * 100])
def test_any_bytes_are_no_parquet_of_ours(tmp_path, data):
    (tmp_path / "x.parquet").write_bytes(data)
    assert not names_our_columns(tmp_path / "x.parquet")


def test_a_footer_of_many_groups_is_known_by_its_beginning(tmp_path):
    file = rows(tmp_path / "x.parquet", [(str(number), b"") for number in range(3000)], row_group_size=1)
    assert names_our_columns(file)
