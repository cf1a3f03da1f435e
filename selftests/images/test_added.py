"""What ADD recognises."""

import bz2
import gzip
import io
import lzma
import tarfile

import pytest

from pytest_otval.images.added import compression, copy_archive, is_git, is_web, web_name, zstd


def tar():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        header = tarfile.TarInfo("x")
        header.size = 5000
        archive.addfile(header, io.BytesIO(bytes(5000)))
    return out.getvalue()


@pytest.mark.parametrize(
    ("packed", "kind"),
    [
        (tar(), ""),
        (gzip.compress(tar(), mtime=0), "gzip"),
        (bz2.compress(tar()), "bzip2"),
        (lzma.compress(tar()), "xz"),
        (zstd.compress(tar()), "zstd"),
        (gzip.compress(b"text", mtime=0), None),
        (zstd.compress(b"text" * 1000), None),
        (gzip.compress(tar(), mtime=0)[:30], None),
        (b"\x28\xb5\x2f\xfdnonsense", None),
        (b"BZhnonsense", None),
        (b"\xfd7zXZ\x00nonsense", None),
        (bytes(10240), None),
        (b"", None),
        (b"text", None),
    ],
)
def test_compression(packed, kind):
    file = io.BytesIO(packed)
    assert compression(file) == kind


def test_zstd_is_copied_plain_and_others_as_they_are(tmp_path):
    target = tmp_path / "copy"
    copy_archive(io.BytesIO(zstd.compress(tar())), "zstd", target, 1 << 20)
    assert target.read_bytes() == tar()
    packed = gzip.compress(tar(), mtime=0)
    copy_archive(io.BytesIO(packed), "gzip", target, 1 << 20)
    assert target.read_bytes() == packed


@pytest.mark.parametrize(
    ("packed", "words"), [(zstd.compress(bytes(5000)), "too large"), (zstd.compress(tar())[:-8], "cannot be read")]
)
def test_zstd_that_is_too_much_or_damaged(tmp_path, packed, words):
    with pytest.raises(ValueError, match=words):
        copy_archive(io.BytesIO(packed), "zstd", tmp_path / "copy", 4000 if "large" in words else 1 << 20)


@pytest.mark.parametrize(
    ("word", "git", "web"),
    [
        ("https://example.org/x.tar.gz", False, True),
        ("HTTP://example.org/x", False, True),
        ("https://github.com/a/b.git", True, False),
        ("https://github.com/a/b.git#v1:sub", True, False),
        ("git@github.com:a/b", True, False),
        ("ssh://git@host/a", True, False),
        ("git://host/a", True, False),
        ("a/b.git", False, False),
        ("github.com/a/b", False, False),
        ("https://example.org/x.git/y", False, True),
    ],
)
def test_addresses(word, git, web):
    assert (is_git(word), is_web(word)) == (git, web)


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://h/a/b.txt?x=1#y", "b.txt"),
        ("https://h/a%20b", "a b"),
        ("https://h/a/", "a"),
        ("https://h", "__unnamed__"),
        ("https://h/", "__unnamed__"),
        ("https://h/x%2Fy", "y"),
    ],
)
def test_name_of_a_fetched_file(url, name):
    assert web_name(url) == name


@pytest.mark.parametrize("url", ["https://h/..", "https://h/%2e%2e", "https://h/a%00"])
def test_no_name(url):
    with pytest.raises(ValueError, match="no file name"):
        web_name(url)
