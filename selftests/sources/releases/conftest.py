"""Source archives and an index that hands them out."""

import hashlib
import io
import tarfile

import pytest

from pytest_otval.sources.fetch import Archive, IndexedRelease
from pytest_otval.sources.files import SourceError


def sdist(top, files):
    """Return a source archive of these texts."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(f"{top}/{name}")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content.encode()))
    return buffer.getvalue()


class Shelf:
    """A package index of files in memory."""

    def __init__(self):
        self.files = {}
        self.listed = {}
        self.asked = []

    def add(self, project, version, files, requires_python=""):
        """Put a release onto it."""
        name, content = f"{project}-{version}.tar.gz", sdist(f"{project}-{version}", files)
        self.files[name] = content
        archive = Archive(project=project, file=name, sha256=hashlib.sha256(content).hexdigest())
        self.listed.setdefault(project, []).append(IndexedRelease(version, requires_python, archive))

    def download(self, archive, target):
        """See ``PackageIndex``."""
        self.asked.append(archive.file)
        if archive.file not in self.files:
            raise SourceError(f"{archive.file}: the package index does not have it")
        target.write_bytes(self.files[archive.file])

    def releases(self, project):
        """See ``PackageIndex``."""
        if project not in self.listed:
            raise SourceError(f"{project}: cannot be downloaded (no such project): run it again")
        return self.listed[project]


@pytest.fixture
def shelf():
    return Shelf()
