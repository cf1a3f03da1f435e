"""Which form the tasks of a dataset have, and what is the same in all of them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_otval.core import OtvalUsageError
from pytest_otval.task.digest import task_digest
from pytest_otval.task.pack import pack
from pytest_otval.task.packed.forms import FILE_OF, Form
from pytest_otval.task.source import FolderSource, source_of

DEMO = Path(__file__).parents[2] / "datasets/demo"


@pytest.fixture
def folders(tmp_path):
    for task in ("a", "b"):
        (tmp_path / "set/tasks" / task).mkdir(parents=True)
        (tmp_path / "set/tasks" / task / "task.toml").touch()
    (tmp_path / "set/dataset.toml").touch()
    return tmp_path / "set"


def test_folders_are_used_where_they_are(folders, tmp_path):
    source = source_of(folders)
    assert isinstance(source, FolderSource)
    assert source.path == folders
    assert source.names() == (["a", "b"], [])
    assert source.anchor("a") == folders / "tasks/a/task.toml"
    assert source.folder("a", tmp_path / "scratch") == folders / "tasks/a"
    assert [source.has(name) for name in ("a", "c", "", ".", "..", "../tasks/a")] == [True] + [False] * 5
    assert not (tmp_path / "scratch").exists()


@pytest.mark.parametrize("form", Form)
def test_a_packed_dataset_answers_as_its_folders_do(form, tmp_path):
    pack(DEMO, form, tmp_path / "demo")
    packed, folders = source_of(tmp_path / "demo"), source_of(DEMO)
    names = folders.names()[0]
    assert packed.names() == (names, [])
    assert packed.path == tmp_path / "demo"
    for name in names:
        folder = packed.folder(name, tmp_path / "scratch")
        assert folder == tmp_path / "scratch/demo" / name
        assert task_digest(folder) == task_digest(folders.folder(name, tmp_path))
        assert packed.anchor(name) == tmp_path / "demo" / FILE_OF[form]
    assert not packed.has("none")


def test_a_dataset_with_two_forms_is_refused_with_what_to_remove(folders, tmp_path):
    for form in Form:
        pack(folders, form, tmp_path / form)
        shutil.copy(tmp_path / form / FILE_OF[form], folders)
        with pytest.raises(OtvalUsageError, match=rf"has its tasks twice: remove {FILE_OF[form]}, or tasks/$"):
            source_of(folders)
        (folders / FILE_OF[form]).unlink()
    bare = tmp_path / "bare"
    shutil.copytree(folders / "tasks", bare)
    shutil.copy(tmp_path / "tar/tasks.tar", bare)
    with pytest.raises(OtvalUsageError, match=r"remove tasks.tar, or the folders of tasks in it$"):
        source_of(bare)
    shutil.rmtree(folders / "tasks")
    for form in Form:
        shutil.copy(tmp_path / form / FILE_OF[form], folders)
    with pytest.raises(OtvalUsageError, match=r"remove tasks.tar and tasks.sqfs, or tasks.parquet$"):
        source_of(folders)


@pytest.mark.parametrize("bare", [False, True])
def test_other_parquet_files_beside_tasks_are_no_form(folders, bare):
    import pyarrow
    from pyarrow import parquet

    (folders / "data").mkdir()
    parquet.write_table(pyarrow.table({"x": [1]}), folders / "data/results.parquet")
    (folders / "damaged.parquet").write_text("x")
    if bare:
        for task in ("a", "b"):
            (folders / "tasks" / task).rename(folders / task)
        (folders / "tasks").rmdir()
    assert source_of(folders).names() == (["a", "b"], [])


def test_no_library_is_imported_before_a_packed_file_is_opened(folders, tmp_path):
    pack(folders, Form.PARQUET, tmp_path / "packed")
    script = (
        "import sys; from pathlib import Path; from pytest_otval.task.index import is_dataset, is_prepared\n"
        "from pytest_otval.task.source import source_of\n"
        "assert all(is_dataset(Path(p)) and is_prepared(Path(p)) for p in sys.argv[1:])\n"
        "source_of(Path(sys.argv[2])).names()\n"
        "sys.exit(bool({'pyarrow', 'tarfile', 'backports'} & set(sys.modules)))"
    )
    argv = [sys.executable, "-c", script, str(tmp_path / "packed"), str(folders)]
    assert subprocess.run(argv, check=False).returncode == 0


PEEKED = ("task.toml", "environment/Dockerfile", "tests/test.sh", "missing", "environment")


@pytest.mark.parametrize("form", [None, *Form])
def test_a_look_at_files_is_the_same_in_each_form(form, tmp_path):
    folder = DEMO
    if form is not None:
        folder = tmp_path / "demo"
        pack(DEMO, form, folder)
    source = source_of(folder)
    name = source.names()[0][0]
    task = DEMO / "tasks" / name
    expected = {path: (task / path).read_bytes() for path in PEEKED if (task / path).is_file()}
    assert len(expected) == 3
    assert source.peek(name, PEEKED, 100_000) == expected
    small = min(map(len, expected.values()))
    assert source.peek(name, PEEKED, small) == {path: text for path, text in expected.items() if len(text) <= small}


def test_a_look_follows_no_link_and_waits_for_nothing(folders, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "Dockerfile").write_text("FROM x")
    (folders / "tasks/a/environment").symlink_to(outside)
    (folders / "tasks/a/instruction.md").symlink_to(outside / "Dockerfile")
    os.mkfifo(folders / "tasks/a/pipe")
    assert FolderSource(folders).peek("a", ("environment/Dockerfile", "instruction.md", "pipe"), 100) == {}
