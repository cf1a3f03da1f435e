"""What ADD does and COPY does not: recognising local archives, which are unpacked, and addresses, which are fetched."""

from __future__ import annotations

import bz2
import lzma
import posixpath
import re
import sys
import tarfile
import urllib.parse
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Literal

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Compression = Literal["", "gzip", "bzip2", "xz", "zstd"]

TAR_FLAGS: Mapping[Compression, str] = {"": "", "gzip": "z", "bzip2": "j", "xz": "J", "zstd": ""}
"""How the container's tar reads what ``copy_archive`` wrote."""

_XZ_MEMORY = 256 << 20
_STARTS: Mapping[Compression, Callable[[bytes], bytes]] = {
    "": lambda data: data[: tarfile.BLOCKSIZE],
    "gzip": lambda data: zlib.decompressobj(31).decompress(data, tarfile.BLOCKSIZE),
    "bzip2": lambda data: bz2.BZ2Decompressor().decompress(data, tarfile.BLOCKSIZE),
    "xz": lambda data: lzma.LZMADecompressor(lzma.FORMAT_XZ, _XZ_MEMORY).decompress(data, tarfile.BLOCKSIZE),
    "zstd": lambda data: zstd.ZstdDecompressor().decompress(data, tarfile.BLOCKSIZE),
}
_MAGIC: Mapping[bytes, Compression] = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
}
_BLOCK = 1 << 20
_WEB = re.compile(r"https?://", re.IGNORECASE)
_GIT = re.compile(r"(?:git|ssh)://|[\w.-]+@[\w.-]+:|https?://[^?#]*\.git(?:[?#].*)?$", re.IGNORECASE)
_FILE_NAME = "__unnamed__"


def is_git(word: str) -> bool:
    """Whether an ADD source is a Git repository (BuildKit: frontend/dockerfile/dfgitutil/git_ref.go)."""
    return _GIT.match(word) is not None


def is_web(word: str) -> bool:
    """Whether an ADD source is a file that is fetched."""
    return _WEB.match(word) is not None and not is_git(word)


def web_name(url: str) -> str:
    """Return the name that a fetched file has in a folder: the last part of the address's path.

    Raises ValueError, one line.
    """
    path = urllib.parse.unquote(urllib.parse.urlsplit(url).path, errors="surrogateescape")
    name = posixpath.basename(path.rstrip("/"))
    if name == ".." or "\0" in name:
        raise ValueError("the address's path ends with no file name")
    return _FILE_NAME if name in ("", ".") else name


def compression(file: IO[bytes]) -> Compression | None:
    """Return how a tar archive is compressed, as ADD recognises one by its first bytes; None if it is none."""
    head = file.read(_BLOCK)
    none: Compression = ""
    kind = next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), none)
    try:
        tarfile.TarInfo.frombuf(_STARTS[kind](head), tarfile.ENCODING, "surrogateescape")
    except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError, zstd.ZstdError, tarfile.HeaderError):
        return None
    return kind


def copy_archive(file: IO[bytes], kind: Compression, target: Path, most: int) -> None:
    """Write an archive to ``target`` as it is, but a zstd archive plain: the container's tar does not read it.

    Raises ValueError, one line, for a zstd archive that is damaged or has more than ``most`` bytes.
    """
    with target.open("wb") as copy:
        if kind != "zstd":
            while block := file.read(_BLOCK):
                copy.write(block)
            return
        try:
            with zstd.open(file) as plain:
                while block := plain.read(_BLOCK):
                    most -= len(block)
                    if most < 0:
                        raise ValueError("the archive is too large unpacked")
                    copy.write(block)
        except (EOFError, zstd.ZstdError) as error:
            raise ValueError(f"the archive cannot be read: {error}") from None
