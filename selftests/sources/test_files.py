import io
import os
import tarfile

import pytest

from pytest_otval.sources.files import (
    MAX_SDIST_BYTES,
    File,
    SourceError,
    below,
    publish_file,
    publish_folder,
    read_sdist,
)


def tar_of(*members):
    """Return a tar of (name, content or None for a link, mode)."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content, mode in members:
            info = tarfile.TarInfo(name)
            info.mode = mode
            if content is None:
                info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
                tar.addfile(info)
            else:
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def snapshot(folder):
    return {
        str(path.relative_to(folder)): (oct(path.stat().st_mode), path.read_bytes() if path.is_file() else None)
        for path in folder.rglob("*")
    }


def test_an_sdist_gives_its_regular_files_below_the_top_folder():
    archive = tar_of(("a-1/m.py", b"x = 1\n", 0o640), ("a-1/bin/run", b"#!", 0o750))
    assert read_sdist("a.tar.gz", archive) == {"m.py": File(b"x = 1\n"), "bin/run": File(b"#!", executable=True)}


def test_links_of_an_sdist_are_left_out():
    archive = tar_of(("a-1/link", None, 0o777), ("a-1/m.py", b"", 0o644))
    assert set(read_sdist("a.tar.gz", archive)) == {"m.py"}


@pytest.mark.parametrize("name", ["../evil", "a-1/../../evil", "/etc/evil", "top-level-file"])
def test_paths_outside_the_top_folder_are_refused(name):
    archive = tar_of((name, b"x", 0o644))
    with pytest.raises(SourceError, match="not below its top folder"):
        read_sdist("a.tar.gz", archive)


def test_an_archive_that_unpacks_to_too_much_is_refused_unread():
    info = tarfile.TarInfo("a-1/zeros")
    info.size = MAX_SDIST_BYTES + 1
    with pytest.raises(SourceError, match="more than"):
        read_sdist("a.tar", info.tobuf())


@pytest.mark.parametrize("content", [b"", b"no tar", b"\x1f\x8b broken gzip"])
def test_what_is_no_archive_is_refused_in_one_line(content):
    with pytest.raises(SourceError, match=r"a\.tar\.gz: no readable archive") as caught:
        read_sdist("a.tar.gz", content)
    assert "\n" not in str(caught.value)


def test_below_compares_whole_path_parts():
    assert below("box", ["box"])
    assert below("box/a.py", ["x", "box"])
    assert not below("boxes/a.py", ["box"])
    assert not below("box", ["box/a.py"])


def test_equal_files_make_equal_folders_whatever_the_umask(tmp_path):
    files = {"a/b/c.txt": File(b"1"), "a/run": File(b"2", executable=True)}
    publish_folder(files, tmp_path / "one")
    before = os.umask(0o077)
    try:
        publish_folder(dict(reversed(files.items())), tmp_path / "two")
    finally:
        os.umask(before)
    assert snapshot(tmp_path / "one") == snapshot(tmp_path / "two")
    assert os.access(tmp_path / "two/a/run", os.X_OK)
    assert (tmp_path / "one").stat().st_mode == (tmp_path / "two").stat().st_mode


def test_a_folder_is_replaced_as_a_whole(tmp_path):
    publish_folder({"old": File(b"")}, tmp_path / "task")
    publish_folder({"new": File(b"")}, tmp_path / "task")
    assert [path.name for path in (tmp_path / "task").iterdir()] == ["new"]
    assert [path.name for path in tmp_path.iterdir()] == ["task"]


def test_a_failed_write_leaves_the_old_folder(tmp_path):
    publish_folder({"old": File(b"")}, tmp_path / "task")
    with pytest.raises(OSError):
        publish_folder({"a": File(b""), "a/b": File(b"")}, tmp_path / "task")
    assert [path.name for path in (tmp_path / "task").iterdir()] == ["old"]
    assert [path.name for path in tmp_path.iterdir()] == ["task"]


def test_a_file_is_replaced_as_a_whole(tmp_path):
    publish_file(b"1", tmp_path / "f")
    publish_file(b"2", tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == b"2"
    assert [path.name for path in tmp_path.iterdir()] == ["f"]
