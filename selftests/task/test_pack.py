"""Packing and unpacking: whatever lies in a task, its digest is the same in each form."""

import io
import os
import shutil
import socket
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pytest_otval.core import Conclusion, OtvalUsageError
from pytest_otval.task import pack as module
from pytest_otval.task.digest import task_digest
from pytest_otval.task.pack import _add_task, _archive, pack, packed_task, unpack_dataset
from pytest_otval.task.packed import unpack as rules
from pytest_otval.task.packed.forms import FILE_OF, Form
from pytest_otval.task.source import source_of

DEMO = Path(__file__).parents[2] / "datasets/demo"


def digests(dataset: Path, scratch: Path) -> dict[str, str]:
    source = source_of(dataset)
    return {name: task_digest(source.folder(name, scratch)) for name in source.names()[0]}


def dataset(folder: Path, **tasks: dict) -> Path:
    """Make a dataset; a task's entries are files, (bytes,) programs, texts links, None FIFOs and dicts folders."""
    (folder / "tasks").mkdir(parents=True)
    (folder / "dataset.toml").write_text('[dataset]\nname = "org/set"\n')
    for name, entries in tasks.items():
        make(folder / "tasks" / name, {b"task.toml": b"", **entries})
    return folder


def make(path: Path, entry: object) -> None:
    if entry is None:
        os.mkfifo(path)
    elif isinstance(entry, str):
        path.symlink_to(entry)
    elif isinstance(entry, dict):
        path.mkdir(parents=True)
        for name, inner in entry.items():
            make(path / os.fsdecode(name), inner)
    else:
        path.write_bytes(entry[0] if isinstance(entry, tuple) else entry)
        path.chmod(0o755 if isinstance(entry, tuple) else 0o600)


COMMON = st.sampled_from([b"a", b"b", b"task.toml", b"x" * 120, b".hidden", b"a b", b"-", "ö".encode(), b"\n"])
ODD = st.binary(min_size=1, max_size=30).filter(lambda name: not {0, 47} & set(name) and name not in (b".", b".."))
NAMES = st.one_of(COMMON, ODD)
TARGETS = st.one_of(
    st.sampled_from(["/etc/passwd", "..", "../../..", "a", "a/b", "\udcff", "x" * 300]),
    st.text(st.characters(min_codepoint=1, max_codepoint=0x2FF), min_size=1, max_size=20),
)
CONTENT = st.one_of(st.binary(max_size=20), st.integers(0, 70_000).map(lambda size: b"zero" * (size // 4)))
LEAVES = st.one_of(CONTENT, CONTENT.map(lambda content: (content,)), TARGETS, st.none())
TREES = st.dictionaries(
    NAMES,
    st.recursive(LEAVES, lambda inner: st.dictionaries(NAMES, inner, max_size=4), max_leaves=8),
    max_size=5,
)


@pytest.mark.parametrize("form", Form)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=25)
@given(one=TREES, two=TREES)
@example(one={}, two={b"\x1f\x8b": None})
def test_digests_are_equal_in_each_form_and_back(tmp_path, form, one, two):
    shutil.rmtree(tmp_path)
    source = dataset(tmp_path / "folders/set", one=one, two=two)
    assert pack(source, form, tmp_path / "packed/set") == 2
    assert unpack_dataset(tmp_path / "packed/set", tmp_path / "back/set") == (2, [])
    assert pack(tmp_path / "back/set", form, tmp_path / "again/set") == 2
    expected = digests(source, tmp_path / "scratch")
    for form_of_it in ("packed/set", "back/set", "again/set"):
        assert digests(tmp_path / form_of_it, tmp_path / "scratch") == expected
    first, second = ((tmp_path / name / "set" / FILE_OF[form]).read_bytes() for name in ("packed", "again"))
    assert first == second


@pytest.mark.parametrize("form", Form)
@pytest.mark.parametrize("other", Form)
def test_a_packed_dataset_is_packed_into_another_form(tmp_path, form, other):
    pack(DEMO, form, tmp_path / "first/demo")
    pack(tmp_path / "first/demo", other, tmp_path / "second/demo")
    pack(DEMO, other, tmp_path / "direct/demo")
    assert digests(tmp_path / "second/demo", tmp_path / "scratch") == digests(DEMO, tmp_path / "scratch")
    assert (tmp_path / "second/demo/dataset.toml").read_bytes() == (DEMO / "dataset.toml").read_bytes()
    second, direct = ((tmp_path / name / "demo" / FILE_OF[other]).read_bytes() for name in ("second", "direct"))
    assert second == direct


@pytest.mark.parametrize("form", Form)
def test_bytes_do_not_depend_on_times_owners_modes_or_umask(tmp_path, form, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1000")
    source = dataset(tmp_path / "set", a={b"x": b"1", b"folder": {b"y": (b"2",)}, b"pipe": None, b"link": "x"})
    pack(source, form, tmp_path / "first")
    for path in source.rglob("*"):
        os.utime(path, (1, 1), follow_symlinks=False)
        if os.getuid() == 0:
            os.lchown(path, 12345, 54321)
    (source / "tasks/a/x").chmod(0o640)
    (source / "tasks/a/folder").chmod(0o700)
    before = os.umask(0o077)
    try:
        pack(source, form, tmp_path / "second")
    finally:
        os.umask(before)
    assert (tmp_path / "first" / FILE_OF[form]).read_bytes() == (tmp_path / "second" / FILE_OF[form]).read_bytes()


@pytest.mark.parametrize("form", Form)
def test_what_lies_beside_tasks_is_not_packed(tmp_path, form):
    source = dataset(tmp_path / "set", a={})
    for name in ("forgotten", ".git"):
        (source / "tasks" / name).mkdir()
    (source / "tasks/README").touch()
    (source / "tasks/linked").symlink_to("a")
    assert pack(source, form, tmp_path / "out") == 2
    assert source_of(tmp_path / "out").names() == (["a", "linked"], [])
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["dataset.toml", FILE_OF[form]]


def left(tmp_path):
    return sorted(path.name for path in tmp_path.iterdir())


@pytest.mark.parametrize("form", Form)
def test_a_task_that_no_form_can_hold_is_named(tmp_path, form, monkeypatch):
    source = dataset(tmp_path / "set", a={}, b={})
    monkeypatch.chdir(source / "tasks/b")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind("s")
    with pytest.raises(Conclusion, match="bad-task: task b: s is a socket, which a task cannot have"):
        pack(source, form, tmp_path / "out")
    assert left(tmp_path) == ["set"]


def test_what_could_not_be_unpacked_is_not_packed(tmp_path, monkeypatch):
    source = dataset(tmp_path / "set", a={b"folder": {b"x": b"12345"}})
    for name, value, says in (
        ("MAX_BYTES", 4, "folder/x brings the task above"),
        ("MAX_ENTRIES", 2, "task.toml is one entry more than the 2"),
        ("MAX_DEPTH", 1, "folder/x lies more than 1 folders deep"),
        ("MAX_PATH_BYTES", 7, "folder/x has a path of more than 7"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(rules, name, value)
            with pytest.raises(Conclusion, match=f"task a: {says}"):
                pack(source, Form.TAR, tmp_path / "out")
    monkeypatch.setattr(module, "MAX_ROW_BYTES", 1000)
    with pytest.raises(Conclusion, match="use tar or squashfs"):
        pack(source, Form.PARQUET, tmp_path / "out")
    assert left(tmp_path) == ["set"]


@pytest.mark.skipif(os.getuid() == 0, reason="root can read everything")
def test_what_cannot_be_read_is_not_packed(tmp_path):
    source = dataset(tmp_path / "set", a={b"x": b"1", b"folder": {}})
    for name, says in (("x", "x cannot be opened"), ("folder", "folder cannot be listed")):
        (source / "tasks/a" / name).chmod(0)
        with pytest.raises(Conclusion, match=says):
            pack(source, Form.TAR, tmp_path / "out")
        (source / "tasks/a" / name).chmod(0o755)


def test_wrong_usage(tmp_path, monkeypatch):
    source = dataset(tmp_path / "set", a={})
    with pytest.raises(OtvalUsageError, match="is there already"):
        pack(source, Form.TAR, source)
    with pytest.raises(OtvalUsageError, match="are folders already"):
        unpack_dataset(source, tmp_path / "out")
    for wrong in (tmp_path, tmp_path / "nowhere", source / "dataset.toml"):
        with pytest.raises(OtvalUsageError):
            pack(wrong, Form.TAR, tmp_path / "out")
    make(source / "tasks/a b", {b"task.toml": b""})
    with pytest.raises(OtvalUsageError, match=r"task name 'a b' of .*; rename it"):
        pack(source, Form.TAR, tmp_path / "out")
    shutil.rmtree(source / "tasks/a b")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Conclusion, match="mksquashfs is not on PATH"):
        pack(source, Form.SQUASHFS, tmp_path / "out")
    (tmp_path / "mksquashfs").write_text("#!/bin/sh\necho too old >&2\nexit 1\n")
    (tmp_path / "mksquashfs").chmod(0o755)
    with pytest.raises(OtvalUsageError, match=r"mksquashfs failed; it must be of version 4\.5 or newer: too old"):
        pack(source, Form.SQUASHFS, tmp_path / "out")
    assert left(tmp_path) == ["mksquashfs", "set"]


def test_a_task_that_must_not_be_unpacked_is_left_out_and_told(tmp_path):
    from selftests.task.packed.helpers import rows, tar

    rows(tmp_path / "set/tasks.parquet", [("a", tar("task.toml")), ("b", tar("../x")), ("c", b"")])
    count, refused = unpack_dataset(tmp_path / "set", tmp_path / "out")
    assert (count, left(tmp_path / "out"), left(tmp_path / "out/tasks")) == (1, ["tasks"], ["a"])
    assert [line.partition(": ")[0] for line in refused] == ["task 'b'", "task 'c'"]


def test_row_groups_are_small(tmp_path, monkeypatch):
    from pyarrow import parquet

    monkeypatch.setattr(module, "ROW_GROUP_BYTES", 100_000)
    monkeypatch.setattr(module, "ROW_GROUP_ROWS", 4)
    tasks = {f"t{number}": {b"x": b"1" * (50_000 if number > 7 else 10)} for number in range(10)}
    pack(dataset(tmp_path / "set", **tasks), Form.PARQUET, tmp_path / "out")
    groups = parquet.ParquetFile(tmp_path / "out/tasks.parquet").metadata
    assert [groups.row_group(number).num_rows for number in range(groups.num_row_groups)] == [4, 4, 1, 1]
    assert digests(tmp_path / "out", tmp_path / "scratch") == digests(tmp_path / "set", tmp_path / "scratch")


def test_an_archive_in_memory_is_what_tarfile_writes(tmp_path):
    folder = tmp_path / "task"
    deep = folder / ("long-name-" * 12) / "below"
    deep.mkdir(parents=True)
    (deep / ("file-" * 40)).write_bytes(b"x" * 513)
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "empty").touch()
    (folder / "link").symlink_to("t" * 150)
    os.mkfifo(folder / "fifo")
    (folder / os.fsdecode(b"\xff\xc3\xa9")).write_bytes(bytes(range(256)) * 40)
    packed, digest = packed_task(folder)
    buffer = io.BytesIO()
    with _archive(buffer) as archive:
        _add_task(archive, folder, "")
    assert packed == buffer.getvalue()
    assert digest == task_digest(folder)
    (folder / "empty").write_text("not any more")
    assert packed_task(folder)[1] == task_digest(folder) != digest
