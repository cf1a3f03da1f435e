import hashlib
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.sources.fetch import Archive, fetch, fetch_files, is_fetched, parse_pip_settings, read_fetched
from pytest_otval.sources.files import SourceError

CONTENT = b"the archive"
ARCHIVE = Archive(project="thing", file="thing-1.tar.gz", sha256=hashlib.sha256(CONTENT).hexdigest())


class Shelf:
    """An index that hands out one content, and counts."""

    def __init__(self, content=CONTENT, error=None):
        self.content, self.error, self.asked = content, error, 0

    def download(self, archive, target):
        self.asked += 1
        target.write_bytes(self.content)
        if self.error is not None:
            raise self.error


def test_a_file_is_fetched_once(tmp_path):
    shelf = Shelf()
    assert not is_fetched(ARCHIVE, tmp_path)
    fetch(ARCHIVE, tmp_path, shelf)
    fetch(ARCHIVE, tmp_path, shelf)
    assert is_fetched(ARCHIVE, tmp_path)
    assert (tmp_path / ARCHIVE.file).read_bytes() == CONTENT
    assert shelf.asked == 1


def test_what_can_be_had_is_fetched_though_another_file_cannot(tmp_path):
    other = ARCHIVE.model_copy(update={"file": "thing-2.tar.gz", "sha256": "0" * 64})
    with pytest.raises(SourceError, match=r"^1 of 2 files were not brought: thing-2\.tar\.gz: sha256 is"):
        fetch_files([other, ARCHIVE], tmp_path, Shelf())
    assert is_fetched(ARCHIVE, tmp_path)
    assert fetch_files([ARCHIVE], tmp_path, Shelf()) == 0


def test_a_file_that_was_changed_is_not_read(tmp_path):
    fetch(ARCHIVE, tmp_path, Shelf())
    assert read_fetched(ARCHIVE, tmp_path) == CONTENT
    (tmp_path / ARCHIVE.file).write_bytes(b"another")
    with pytest.raises(SourceError, match="was changed since it was fetched"):
        read_fetched(ARCHIVE, tmp_path)


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/etc/passwd"), lambda path: path.mkdir()])
def test_what_is_no_file_is_not_read(tmp_path, make):
    with pytest.raises(SourceError, match=r"thing-1\.tar\.gz is not fetched"):
        read_fetched(ARCHIVE, tmp_path)
    make(tmp_path / ARCHIVE.file)
    with pytest.raises(SourceError, match="remove it, then"):
        read_fetched(ARCHIVE, tmp_path)


def test_another_content_than_the_pinned_is_refused(tmp_path):
    with pytest.raises(SourceError, match=r"thing-1\.tar\.gz: sha256 is .*, pinned is"):
        fetch(ARCHIVE, tmp_path, Shelf(b"something else"))
    assert not list(tmp_path.iterdir())


def test_an_interrupted_download_leaves_nothing(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        fetch(ARCHIVE, tmp_path, Shelf(error=KeyboardInterrupt()))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("file", ["../evil", "a/b", ".hidden", ""])
def test_a_file_name_stays_in_its_folder(file):
    with pytest.raises(ValueError, match="file"):
        Archive(project="p", file=file, sha256="0" * 64)


def test_pip_settings_of_downloads_are_read():
    listing = "global.index-url='https://mirror.example/simple'\ndownload.cert='/etc/ca.pem'\ninstall.cert='/other'\n"
    assert parse_pip_settings(listing) == {"index-url": "https://mirror.example/simple", "cert": "/etc/ca.pem"}


@given(st.text())
def test_no_listing_of_pip_is_fatal(listing):
    assert isinstance(parse_pip_settings(listing), dict)


@given(st.text())
def test_any_value_survives(value):
    assert parse_pip_settings(f"global.cert={value!r}") == {"cert": value}
