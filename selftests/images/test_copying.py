"""COPY and ADD: what is copied, and how it travels."""

import gzip
import os
import tarfile

import pytest

from pytest_otval.images.copying import CopyError, Source, digest, find_sources, members, total_bytes
from pytest_otval.task.context import list_context


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "context"
    (root / "sub" / "deep").mkdir(parents=True)
    (root / "a.txt").write_text("a")
    (root / "b.txt").write_text("bb")
    (root / "run.sh").write_text("#!")
    (root / "run.sh").chmod(0o700)
    (root / "sub" / "c").write_text("c")
    (root / "sub" / "link").symlink_to("/etc/passwd")
    return root


def names(root, *words):
    return [(source.name, source.entry.path) for source in sources(list_context(root), words)]


def sources(context, words, unpack=False):
    return [source for word in words for source in find_sources(context, word, unpack)]


def travelling(root, source, tmp_path, name="x", owner=(0, 0), mode=""):
    archive = tmp_path / "copy.tar"
    with tarfile.open(archive, "w", errors="surrogateescape") as tar:
        for member in members(list_context(root), source, name, owner, mode):
            member.add_to(tar)
    with tarfile.open(archive) as tar:
        return {member.name: member for member in tar}


def test_files_keep_their_names_and_folders_give_their_contents(folder):
    assert names(folder, "a.txt", "./sub/", "sub/c") == [("a.txt", "a.txt"), ("", "sub"), ("c", "sub/c")]
    assert names(folder, ".") == [("", ".")]
    assert names(folder, "*.txt") == [("a.txt", "a.txt"), ("b.txt", "b.txt")]
    assert names(folder, "../../a.txt") == [("a.txt", "a.txt")]
    assert names(folder, "*.nope") == []


@pytest.mark.parametrize("word", ["nope", "sub/link", "[", "sub/c/d", "sub/l*"])
def test_what_cannot_be_copied(folder, word):
    with pytest.raises(CopyError):
        names(folder, word)


def test_archive_of_a_folder(folder, tmp_path):
    (source,) = sources(list_context(folder), ["sub"])
    found = travelling(folder, source, tmp_path, owner=(7, 8))
    assert sorted(found) == ["c", "deep", "link"]
    assert found["link"].linkname == "/etc/passwd"
    assert {(member.uid, member.gid) for member in found.values()} == {(7, 8)}


def test_modes_are_those_of_the_executable_bit(folder, tmp_path):
    for word, mode in (("run.sh", 0o755), ("a.txt", 0o644)):
        (source,) = sources(list_context(folder), [word])
        assert travelling(folder, source, tmp_path)["x"].mode == mode
        assert travelling(folder, source, tmp_path, mode="4711")["x"].mode == 0o4711


def test_digest_sees_what_matters_and_nothing_else(folder):
    def now():
        context = list_context(folder)
        return [digest(context, source) for source in sources(context, ["."])]

    before = now()
    os.utime(folder / "a.txt", (0, 0))
    (folder / "a.txt").chmod(0o600)
    assert now() == before
    for change in (
        lambda: (folder / "a.txt").write_text("A"),
        lambda: (folder / "a.txt").chmod(0o755),
        lambda: (folder / "a.txt").rename(folder / "z.txt"),
        lambda: (folder / "empty").mkdir(),
        lambda: ((folder / "sub" / "link").unlink(), (folder / "sub" / "link").symlink_to("c")),
    ):
        change()
        assert now() != before
        before = now()


def test_add_unpacks_archives_only(folder):
    with tarfile.open(folder / "t.tar.gz", "w:gz") as tar:
        tar.add(folder / "a.txt", "a.txt")
    with tarfile.open(folder / "t.tar", "w") as tar:
        tar.add(folder / "a.txt", "a.txt")
    (folder / "data.gz").write_bytes(gzip.compress(b"no tar"))
    (folder / "cut.gz").write_bytes(gzip.compress(b"x" * 9999)[:20])
    (folder / "odd.xz").write_bytes(b"\xfd7zXZ\x00 and then nonsense")
    words = ["t.tar.gz", "t.tar", "data.gz", "cut.gz", "odd.xz", "a.txt"]
    context = list_context(folder)
    found = [source.archive for source in sources(context, words, unpack=True)]
    assert found == ["gzip", "", None, None, None, None]
    assert {source.archive for source in sources(context, words)} == {None}


def test_fifo_is_copied_without_being_opened(folder, tmp_path):
    os.mkfifo(folder / "sub" / "fifo")
    (source,) = sources(list_context(folder), ["sub"], unpack=True)
    digest(list_context(folder), source)
    assert travelling(folder, source, tmp_path)["fifo"].isfifo()


def test_odd_names_survive(folder, tmp_path):
    name = os.fsdecode(b"\xff")
    (folder / "sub" / name).write_text("x")
    (source,) = sources(list_context(folder), ["sub"])
    assert digest(list_context(folder), source)
    assert name in travelling(folder, source, tmp_path)


def test_heredoc(folder, tmp_path):
    found = travelling(folder, Source("E", None, b"text"), tmp_path, name="file")
    assert found["file"].size == 4


def test_total_bytes(folder):
    context = list_context(folder)
    assert total_bytes(context, sources(context, ["*.txt", "sub"])) == 4
