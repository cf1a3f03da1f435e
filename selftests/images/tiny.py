"""A base image of a busybox and a few files, and a profile that has no other."""

from __future__ import annotations

import io
import os
import shutil
import tarfile

from pytest_otval.images.oci import NoAnswerError
from pytest_otval.images.pack import packing
from pytest_otval.profile import ImageNames, Profile, Recipe


class SilentRegistry:
    """As on a machine without a network."""

    def resolve(self, reference):
        raise NoAnswerError(f"{reference.host}: no route")


def tiny_profile() -> Profile:
    """``tiny`` is the one base image."""
    images = (ImageNames(names=("tiny",), recipe="tiny"),)
    return Profile(name="x", images=images, recipes={"tiny": Recipe(suite="tiny")})


TINY = (
    *(("folder", name, 0o755, (0, 0), "") for name in ("bin", "etc", "usr", "usr/lib", "var", "opt", "opt/deep")),
    ("link", "bin/sh", 0, (0, 0), "busybox"),
    ("link", "lib", 0, (0, 0), "usr/lib"),
    ("folder", "app", 0o750, (5, 6), ""),
    ("file", "app/file", 0o640, (5, 6), "old"),
    ("folder", "app/sub", 0o711, (7, 8), ""),
    ("file", "app/sub/x", 0o600, (7, 8), "old"),
    ("link", "filelink", 0, (0, 0), "app/file"),
    ("link", "applink", 0, (0, 0), "/app"),
    ("link", "dangling", 0, (0, 0), "/later/dir"),
    ("link", "loop", 0, (0, 0), "loop"),
    ("folder", "tmp", 0o1777, (0, 0), ""),
    ("file", "etc/passwd", 0o644, (0, 0), "root:x:0:0::/root:/bin/sh\napp:x:70:71::/app:/bin/sh\n"),
    ("file", "etc/group", 0o644, (0, 0), "root:x:0:\nstaff:x:50:\n"),
)
"""A base image: a shell, and folders, files and links of several owners."""


def tiny_base(target, all_root):
    """Pack ``TINY`` with a busybox."""
    kinds = {"folder": tarfile.DIRTYPE, "link": tarfile.SYMTYPE, "file": tarfile.REGTYPE}
    with (
        packing(target, all_root) as stream,
        os.fdopen(os.dup(stream), "wb") as file,
        tarfile.open(fileobj=file, mode="w|", format=tarfile.GNU_FORMAT) as tar,
    ):
        for kind, name, mode, owner, content in TINY:
            header = tarfile.TarInfo(name)
            header.type, header.mode, header.mtime = kinds[kind], mode, 1_600_000_000
            header.uid, header.gid = owner
            if kind == "link":
                header.linkname = content
            header.size = len(content) if kind == "file" else 0
            tar.addfile(header, io.BytesIO(content.encode()))
        tar.add(os.path.realpath(shutil.which("busybox")), "bin/busybox")
