"""tasks.tar: names by one scan of headers, a task by its own part of the archive."""

import io
import tarfile

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_otval.core import Conclusion, OtvalUsageError
from pytest_otval.task.source import source_of
from selftests.task.packed.helpers import member, refusal, tar, tree, zipped

FOLDER = {"kind": tarfile.DIRTYPE, "mode": 0o755}


def source(tmp_path, archive: bytes):
    (tmp_path / "set").mkdir(exist_ok=True)
    (tmp_path / "set/tasks.tar").write_bytes(archive)
    return source_of(tmp_path / "set")


ODD = ["long" * 60, "p" * 90 + "/" + "q" * 60, "\udcff", "ö"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    names=st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([*"xyz", *ODD])), unique=True, max_size=12),
    sizes=st.lists(st.sampled_from([0, 1, 511, 512, 513]), min_size=12, max_size=12),
    kinds=st.lists(st.sampled_from([tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.DIRTYPE]), min_size=12, max_size=12),
    form=st.sampled_from([tarfile.GNU_FORMAT, tarfile.PAX_FORMAT, tarfile.USTAR_FORMAT]),
)
def test_each_member_is_found_whatever_its_headers(tmp_path, names, sizes, kinds, form):
    data = io.BytesIO()
    expected = {}
    with tarfile.open(fileobj=data, mode="w", format=form, errors="surrogateescape") as archive:
        for (task, name), size, kind in zip(names, sizes, kinds, strict=False):
            if form == tarfile.USTAR_FORMAT and name == ODD[0]:
                continue
            size = size if kind == tarfile.REGTYPE else 0
            info, content = member(
                f"{task}/{name}", b"x" * size, kind, target="t" * (99 if form == tarfile.USTAR_FORMAT else 150)
            )
            info.mtime = 0.5 if size == 513 else 0
            archive.addfile(info, io.BytesIO(content))
            expected.setdefault(task, set()).add((f"{task}/{name}".encode("utf-8", "surrogateescape"), size))
    tasks = source(tmp_path, data.getvalue())
    assert tasks.names() == ([], sorted(expected))
    for task, wanted in expected.items():
        entries = [(entry.path, sum(map(len, entry.content()))) for entry in tasks._entries(task)]
        assert sorted((task.encode() + b"/" + path, size) for path, size in entries) == sorted(wanted)


@pytest.mark.parametrize("top", ["", "./"])
def test_names_are_those_of_top_folders_with_a_task_toml(tmp_path, top):
    names = [
        "b/task.toml",
        "a/task.toml",
        "a/x",
        "zoo/docs/task.toml",
        ".git/task.toml",
        "README.md",
        "../up/task.toml",
    ]
    archive = tar(*(f"{top}{name}" for name in names), member(f"{top}empty", **FOLDER), "\udcff/task.toml")
    tasks = source(tmp_path, archive)
    assert tasks.names() == (["a", "b", "\udcff"], ["empty", "zoo"])
    assert [tasks.has(name) for name in ("a", "zoo", ".git", "..", "", "README.md", "a/x")] == [True] + [False] * 6
    assert tasks.anchor("a") == tmp_path / "set/tasks.tar"


def test_a_task_in_pieces_is_put_together(tmp_path):
    archive = tar("a/task.toml", "b/task.toml", member("a/x", b"1"), "top", member("./a//y/z", b"2"), "b/x")
    tasks = source(tmp_path, archive)
    assert tree(tasks.folder("a", tmp_path / "scratch")) == {
        "task.toml": "file 644 ",
        "x": "file 644 1",
        "y": "folder 755",
        "y/z": "file 644 2",
    }
    assert tree(tasks.folder("b", tmp_path / "scratch")).keys() == {"task.toml", "x"}


def test_a_hard_link_to_another_task_is_refused(tmp_path):
    link = member("b/x", kind=tarfile.LNKTYPE, target="a/task.toml")
    tasks = source(tmp_path, tar("a/task.toml", "b/other", link))
    assert tasks.names() == (["a"], ["b"])
    tasks = source(tmp_path, tar("a/task.toml", "b/task.toml", link, member("a/y", kind=tarfile.LNKTYPE, target="b/z")))
    # Without its first folder the target would be a file of the task itself.
    assert "hard link" in refusal(tasks.folder, "b", tmp_path / "scratch")
    assert "hard link" in refusal(tasks.folder, "a", tmp_path / "scratch")


def test_one_bad_task_does_not_touch_the_others(tmp_path):
    tasks = source(tmp_path, tar("a/task.toml", "b/task.toml", "b/../../x", member("b/n", kind=tarfile.CHRTYPE)))
    assert refusal(tasks.folder, "b", tmp_path / "scratch") == "../../x has .. in its path"
    assert tree(tasks.folder("a", tmp_path / "scratch")).keys() == {"task.toml"}
    assert "no task 'c'" in refusal(tasks.folder, "c", tmp_path / "scratch")
    assert "no task '..'" in refusal(tasks.folder, "..", tmp_path / "scratch")


@pytest.mark.parametrize(
    "archive",
    [
        b"",
        b"x" * 2000,
        tar("a/task.toml")[:700],
        zipped(tar("a/task.toml")),
        tar(member("a/task.toml", b"x" * 600))[:1200],
    ],
)
def test_an_unusable_archive_is_named(tmp_path, monkeypatch, archive):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OtvalUsageError, match=r"^set/tasks\.tar cannot be read: .*; get or pack the dataset anew$"):
        source(tmp_path, archive).names()


def test_a_damaged_header_is_damage_to_its_task(tmp_path):
    archive = bytearray(tar("a/task.toml", "b/task.toml", "b/x", "c/task.toml"))
    place = archive.index(b"b/x")
    archive[place + 100] ^= 1
    tasks = source(tmp_path, bytes(archive))
    assert tasks.names() == (["a", "b", "c"], [])
    assert "a header is damaged" in refusal(tasks.folder, "b", tmp_path / "scratch")
    assert tree(tasks.folder("c", tmp_path / "scratch")) == {"task.toml": "file 644 "}


def test_an_archive_that_vanishes_is_no_fault_of_its_tasks(tmp_path):
    tasks = source(tmp_path, tar("a/task.toml"))
    assert tasks.has("a")
    (tmp_path / "set/tasks.tar").unlink()
    with pytest.raises(Conclusion, match="No such file") as caught:
        tasks.folder("a", tmp_path / "scratch")
    assert caught.value.reason == "dataset-unreadable"
    assert not (tmp_path / "scratch/set/a").exists()
