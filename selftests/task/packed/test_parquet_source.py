"""Parquet: names without tasks, tasks out of groups of any size, and files that are wrong."""

import os
import subprocess
import sys

import pyarrow
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from pytest_otval.core import Conclusion, OtvalUsageError
from pytest_otval.task.packed.parquet import ParquetSource
from pytest_otval.task.source import source_of
from selftests.task.packed.helpers import member, refusal, rows, tar, zipped


def task(text: str) -> bytes:
    return tar("task.toml", member("x", text.encode()))


@pytest.fixture
def dataset(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path / "set"


def texts(source, names, scratch):
    return [(source.folder(name, scratch) / "x").read_text() for name in names]


@pytest.mark.parametrize("group", [1, 3, 1000])
@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
def test_tasks_are_found_in_any_order_and_in_groups_of_any_size(dataset, tmp_path, group, compression):
    names = [f"t{number:02}" for number in range(10)]
    rows(
        dataset / "tasks.parquet", [(name, task(name)) for name in names], row_group_size=group, compression=compression
    )
    source = source_of(dataset)
    assert source.names() == (names, [])
    for order in (names, names[::-1], names[::3] + names[1::4] + ["t05", "t05"]):
        assert texts(source, order, tmp_path / "scratch") == order
    assert source.anchor("t03") == dataset / "tasks.parquet"


def test_shards_are_one_dataset(dataset, tmp_path):
    rows(dataset / "data/train-00001.parquet", [("c", task("c")), ("a", zipped(task("a")))])
    rows(dataset / "data/train-00000.parquet", [("b", task("b"))])
    rows(dataset / "more.parquet", [("d", task("d"))])
    source = source_of(dataset)
    assert source.names() == (["a", "b", "c", "d"], [])
    assert texts(source, "abcdab", tmp_path / "scratch") == list("abcdab")
    assert source.anchor("c") == dataset / "data/train-00001.parquet"
    assert source.anchor("d") == dataset / "more.parquet"


def test_names_are_taken_with_a_dot_or_a_slash(dataset, tmp_path):
    rows(dataset / "tasks.parquet", [("./a", tar("a/x")), ("b/", tar("b/x")), ("./c/", tar("./x"))])
    source = source_of(dataset)
    assert source.names() == (["a", "b", "c"], [])
    assert texts(source, "abc", tmp_path / "scratch") == [""] * 3


def test_names_that_lead_elsewhere_are_never_unpacked(dataset, tmp_path):
    rows(dataset / "tasks.parquet", [(name, task("x")) for name in ("..", ".x", "a/b", "/etc", "n\0ul", "fine")])
    source = source_of(dataset)
    assert source.names() == (["/etc", "a/b", "fine", "n\0ul"], [])
    for name in ("..", ".", ".x", "a/b", "/etc", "n\0ul"):
        assert "that could be unpacked" in refusal(source.folder, name, tmp_path / "scratch")
    assert not (tmp_path / "scratch").exists()


def test_two_rows_of_one_name_are_refused_with_both_places(dataset):
    rows(dataset / "data/0.parquet", [("a", b""), ("b", b"")])
    rows(dataset / "data/1.parquet", [("c", b""), ("b/", b"")])
    with pytest.raises(OtvalUsageError) as caught:
        source_of(dataset).names()
    assert (
        str(caught.value)
        == "two tasks are called 'b': set/data/0.parquet row 1 and set/data/1.parquet row 1; remove one"
    )


@pytest.mark.parametrize("name", [None, "", "./", "/"])
def test_a_row_without_a_name_is_refused(dataset, name):
    rows(dataset / "tasks.parquet", [("a", b""), (name, b"")])
    with pytest.raises(OtvalUsageError, match=r"^set/tasks\.parquet row 1 has no `path`"):
        source_of(dataset).names()


COLUMNS = [
    ({"path": ["a"]}, "no column `task_binary` of binary"),
    ({"task_binary": [b""]}, "no column `path` of text"),
    ({"path": [1], "task_binary": [b""]}, "no column `path` of text"),
    ({"path": ["a"], "task_binary": ["text"]}, "no column `task_binary` of binary"),
    ({"path": ["a"], "task_binary": [[b""]]}, "no column `task_binary` of binary"),
]


@pytest.mark.parametrize(("columns", "says"), COLUMNS)
def test_other_columns_are_refused(dataset, columns, says):
    dataset.mkdir()
    parquet.write_table(pyarrow.table(columns), dataset / "tasks.parquet")
    with pytest.raises(OtvalUsageError, match=rf"^set/tasks\.parquet cannot be read: it has {says}; get or pack"):
        source_of(dataset).names()


@pytest.mark.parametrize(("text", "binary"), [("large_string", "large_binary"), ("string_view", "binary_view")])
@pytest.mark.parametrize("dictionary", [False, True])
def test_other_types_of_text_and_binary_are_taken(dataset, tmp_path, text, binary, dictionary):
    dataset.mkdir()
    names, tasks = pyarrow.array(["a", "b"], text), pyarrow.array([task("a"), task("b")], binary)
    if dictionary and "view" not in text:
        names, tasks = names.dictionary_encode(), tasks.dictionary_encode()
    parquet.write_table(pyarrow.table({"more": [1, 2], "task_binary": tasks, "path": names}), dataset / "tasks.parquet")
    assert texts(source_of(dataset), "ab", tmp_path / "scratch") == ["a", "b"]


@pytest.mark.parametrize("cut", [0, 3, 8, -1, -100, None])
def test_a_file_that_is_not_whole_is_named(dataset, cut):
    file = rows(dataset / "tasks.parquet", [("a", task("a"))])
    file.write_bytes(b"PAR1 and no more PAR1" if cut is None else file.read_bytes()[:cut])
    with pytest.raises(OtvalUsageError, match=r"^set/tasks\.parquet cannot be read: .*; get or pack the dataset anew$"):
        source_of(dataset).names()


def test_damage_to_one_task_is_its_own(dataset, tmp_path):
    marks = {name: (name * 4000).encode() for name in "abc"}
    archives = [(name, tar(member("x", mark))) for name, mark in marks.items()]
    options = {"row_group_size": 1, "compression": "none", "use_dictionary": False, "write_page_checksum": True}
    file = rows(dataset / "tasks.parquet", archives, **options)
    data = file.read_bytes()
    file.write_bytes(data.replace(marks["b"], b"?" + marks["b"][1:]))
    source = source_of(dataset)
    assert source.has("b")
    assert refusal(source.folder, "b", tmp_path / "scratch").startswith("the packed task cannot be read: ")
    assert texts(source, "ac", tmp_path / "scratch") == ["a" * 4000, "c" * 4000]
    assert refusal(source.folder, "b", tmp_path / "scratch")


@pytest.mark.parametrize("archive", [None, b"", b"no tar", tar("a")[:100]])
def test_a_row_without_an_archive_is_a_bad_task(dataset, tmp_path, archive):
    rows(dataset / "tasks.parquet", [("a", task("a")), ("b", archive), ("c", task("c"))])
    source = source_of(dataset)
    assert refusal(source.folder, "b", tmp_path / "scratch").startswith("the packed task cannot be read: ")
    assert texts(source, "ca", tmp_path / "scratch") == ["c", "a"]


def test_a_file_that_vanishes_is_no_fault_of_its_tasks(dataset, tmp_path):
    file = rows(dataset / "tasks.parquet", [("a", task("a"))])
    source = source_of(dataset)
    assert source.has("a")
    file.unlink()
    with pytest.raises(Conclusion, match="No such file") as caught:
        source.folder("a", tmp_path / "scratch")
    assert caught.value.reason == "dataset-unreadable"


def test_the_column_of_tasks_is_not_read_for_names(dataset):
    """The data of that column is cut out of the file, and names are there all the same."""
    file = rows(dataset / "tasks.parquet", [("a", os.urandom(100_000))], compression="none", use_dictionary=False)
    column = parquet.ParquetFile(file).metadata.row_group(0).column(1)
    data = bytearray(file.read_bytes())
    start = column.data_page_offset
    data[start : start + column.total_compressed_size] = bytes(column.total_compressed_size)
    file.write_bytes(data)
    assert source_of(dataset).names() == (["a"], [])


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    tasks = [(name, task(name)) for name in "abc"]
    options = {"row_group_size": 2, "compression": "zstd", "write_page_checksum": True}
    return rows(tmp_path_factory.mktemp("small") / "x.parquet", tasks, **options).read_bytes()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=300)
@given(data=st.data())
def test_any_changed_bytes_give_a_task_or_a_refusal(tmp_path, small, data):
    changed = bytearray(small)
    places = st.integers(0, len(small) - 1)
    for place, byte in data.draw(st.lists(st.tuples(places, st.integers(0, 255)), min_size=1, max_size=4)):
        changed[place] = byte
    (tmp_path / "set").mkdir(exist_ok=True)
    (tmp_path / "set/tasks.parquet").write_bytes(changed)
    source = source_of(tmp_path / "set")
    try:
        names = source.names()[0]
    except OtvalUsageError as error:
        assert str(error).isprintable()
        return
    for name in names:
        try:
            source.folder(name, tmp_path / "scratch")
        except Conclusion as conclusion:
            assert conclusion.reason == "bad-task"


GROUP_MB = 100
MEASURE = """
import sys
from pathlib import Path
from pytest_otval.task.source import source_of
def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))

source = source_of(Path(sys.argv[1]))
names = source.names()[0]
before = peak()
for name in names[-2:]:
    source.folder(name, Path(sys.argv[2]))
print(peak() - before)
"""


def test_a_huge_group_is_read_with_little_memory(dataset, tmp_path):
    block = os.urandom(1024 * 1024)
    tasks = [(f"t{number:03}", tar(member("x", block))) for number in range(GROUP_MB)]
    # Without this pyarrow looks at the size of a page every 1024 rows only.
    options = {"write_batch_size": 1, "compression": "none", "use_dictionary": False}
    file = rows(dataset / "tasks.parquet", tasks, row_group_size=1000, **options)
    assert parquet.ParquetFile(file).metadata.num_row_groups == 1
    argv = [sys.executable, "-c", MEASURE, str(dataset), str(tmp_path / "scratch")]
    kilobytes = int(subprocess.run(argv, check=True, capture_output=True, text=True).stdout)
    assert kilobytes < GROUP_MB * 1024 / 4


def test_going_on_in_a_group_reads_each_row_once(dataset, tmp_path, monkeypatch):
    names = [f"t{number:02}" for number in range(20)]
    file = rows(dataset / "tasks.parquet", [(name, task(name)) for name in names])
    source = ParquetSource(dataset, [file])
    started = []
    original = parquet.ParquetFile.iter_batches

    def counted(self, *args, **kwargs):
        started.append(args)
        return original(self, *args, **kwargs)

    monkeypatch.setattr(parquet.ParquetFile, "iter_batches", counted)
    assert texts(source, names[::2], tmp_path / "scratch") == names[::2]
    assert len(started) == 1
