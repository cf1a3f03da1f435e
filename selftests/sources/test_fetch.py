import hashlib
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.sources.fetch import (
    Archive,
    PackageIndex,
    fetch,
    fetch_files,
    is_fetched,
    parse_pip_settings,
    read_fetched,
)
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


FILES = {
    "thing-1.10.tar.gz": CONTENT,
    "thing-1.9.tar.gz": CONTENT,
    "thing-2.0rc1.tar.gz": CONTENT,
    "thing-1.9-py3-none-any.whl": CONTENT,
    "thing-1.8.zip": CONTENT,
    "thing-odd.tar.gz": CONTENT,
}
PAGE = "".join(
    f'<a href="../../files/{name}#sha256={ARCHIVE.sha256}" data-requires-python="&gt;=3.9">{name}</a>\n'
    for name in FILES
)
PAGE += f'<a href="../../files/thing-1.7.tar.gz#sha256={ARCHIVE.sha256}" data-yanked="">thing-1.7.tar.gz</a>\n'
PAGE += '<a href="../../files/thing-1.6.tar.gz">thing-1.6.tar.gz</a>\n'


@pytest.fixture
def index(monkeypatch):
    """A package index that serves the simple repository API of this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            pages = {"/simple/thing/": PAGE.encode(), **{f"/files/{name}": content for name, content in FILES.items()}}
            content = pages.get(self.path)
            self.send_response(404 if content is None else 200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(content or b"")

        def log_message(self, *words):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        settings = {"index-url": f"http://127.0.0.1:{server.server_port}/simple"}
        monkeypatch.setattr("pytest_otval.sources.fetch.pip_settings", lambda: settings)
        yield PackageIndex()
        server.shutdown()


def test_releases_are_listed_from_old_to_new(index):
    found = index.releases("thing")
    assert [(one.version, one.requires_python, one.sdist.file) for one in found] == [
        ("1.9", ">=3.9", "thing-1.9.tar.gz"),
        ("1.10", ">=3.9", "thing-1.10.tar.gz"),
    ]


def test_a_file_of_an_index_is_fetched(index, tmp_path):
    (_, newest) = index.releases("thing")
    fetch(newest.sdist, tmp_path, index)
    assert read_fetched(newest.sdist, tmp_path) == CONTENT


def test_what_an_index_does_not_have_is_told_in_one_line(index, tmp_path):
    with pytest.raises(SourceError, match=r"^nothing: cannot be downloaded \(.*\): run it again$"):
        index.releases("nothing")
    with pytest.raises(SourceError, match=r"^thing-1\.tar\.gz: the package index does not have it$"):
        fetch(ARCHIVE, tmp_path, index)


def test_pip_settings_of_downloads_are_read():
    listing = "global.index-url='https://mirror.example/simple'\ndownload.cert='/etc/ca.pem'\ninstall.cert='/other'\n"
    assert parse_pip_settings(listing) == {"index-url": "https://mirror.example/simple", "cert": "/etc/ca.pem"}


@given(st.text())
def test_no_listing_of_pip_is_fatal(listing):
    assert isinstance(parse_pip_settings(listing), dict)


@given(st.text())
def test_any_value_survives(value):
    assert parse_pip_settings(f"global.cert={value!r}") == {"cert": value}
