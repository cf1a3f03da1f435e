"""Downloading files of package releases, pinned by sha256, from the package index that pip is configured for.

pip itself is not asked for source archives: it runs their build backend to read their metadata, and nothing of a
package may run on the host.
"""

from __future__ import annotations

import ast
import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from packaging.version import Version
from pydantic import BaseModel, ConfigDict, Field

from pytest_otval.sources.files import SourceError
from pytest_otval.task.reading import NotReadableError, read_regular

if TYPE_CHECKING:
    from pypi_simple import DistributionPackage, ProjectPage, PyPISimple

MAX_ARCHIVE_BYTES = 64 * 1024 * 1024
_CHUNK = 1024 * 1024


class Archive(BaseModel):
    """A file of a release: an sdist or a wheel."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    project: str
    file: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$")
    """Its name on the index, and in the folder of fetched files."""
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


class Index(Protocol):
    """Where files come from."""

    def download(self, archive: Archive, target: Path) -> None:
        """Write the file to ``target``. Raises SourceError where it cannot be had."""


@dataclass(frozen=True, slots=True)
class IndexedRelease:
    """A release with a source archive, as an index lists it."""

    version: str
    requires_python: str
    """A specifier, or ""."""
    sdist: Archive


def is_fetched(archive: Archive, folder: Path) -> bool:
    """Tell whether the file is in ``folder``; its content was verified before it got there."""
    return (folder / archive.file).is_file()


def fetch(archive: Archive, folder: Path, index: Index) -> None:
    """Bring the file into ``folder`` unless it is there. It appears there whole and verified, or not at all.

    Raises SourceError where it cannot be had, or has another sha256 than the pinned one.
    """
    if is_fetched(archive, folder):
        return
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".fetching-") as scratch:
        partial = Path(scratch) / archive.file
        index.download(archive, partial)
        found = _sha256(partial)
        if found != archive.sha256:
            raise SourceError(f"{archive.file}: sha256 is {found}, pinned is {archive.sha256}: do not use this index")
        partial.rename(folder / archive.file)


def fetch_files(archives: Collection[Archive], folder: Path, index: Index) -> int:
    """Bring the files that are not in ``folder`` yet, and return how many these were.

    Raises SourceError that names the first of those that cannot be had; the others are there then.
    """
    missing = [archive for archive in archives if not is_fetched(archive, folder)]
    failed = []
    for archive in missing:
        try:
            fetch(archive, folder, index)
        except SourceError as error:
            failed.append(str(error))
    if failed:
        raise SourceError(f"{len(failed)} of {len(missing)} files were not brought: {failed[0]}")
    return len(missing)


def read_fetched(archive: Archive, folder: Path) -> bytes:
    """Return the content of a file that was fetched. Raises SourceError where it is not there, or was changed since."""
    path = folder / archive.file
    try:
        content = read_regular(path, MAX_ARCHIVE_BYTES)
    except FileNotFoundError:
        raise SourceError(f"{archive.file} is not fetched: run `patch.py fetch`") from None
    except (NotReadableError, OSError) as error:
        raise SourceError(f"{path} {error}: remove it, then run `patch.py fetch`") from None
    if hashlib.sha256(content).hexdigest() != archive.sha256:
        raise SourceError(f"{path} was changed since it was fetched: remove it, then run `patch.py fetch`")
    return content


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


class PackageIndex:
    """The package index of pip's settings, read through the simple repository API."""

    def __init__(self) -> None:
        self._pages: dict[str, ProjectPage] = {}

    @cached_property
    def _client(self) -> PyPISimple:
        import requests
        from pypi_simple import PYPI_SIMPLE_ENDPOINT, PyPISimple

        settings = pip_settings()
        session = requests.Session()
        if "cert" in settings:
            session.verify = settings["cert"]
        if "proxy" in settings:
            session.proxies = {"http": settings["proxy"], "https": settings["proxy"]}
        return PyPISimple(settings.get("index-url", PYPI_SIMPLE_ENDPOINT), session=session)

    def download(self, archive: Archive, target: Path) -> None:
        """See ``Index``."""
        with _told(archive.file):
            package = next((one for one in self._page(archive.project).packages if one.filename == archive.file), None)
            if package is None:
                raise SourceError(f"{archive.file}: the package index does not have it")
            self._client.download_package(package, target, verify=False)

    def releases(self, project: str) -> list[IndexedRelease]:
        """Return the final releases that have a source archive with a checksum, from old to new. Raises SourceError."""
        with _told(project):
            found = [_release(package) for package in self._page(project).packages]
        return sorted(filter(None, found), key=lambda release: Version(release.version))

    def _page(self, project: str) -> ProjectPage:
        if project not in self._pages:
            self._pages[project] = self._client.get_project_page(project)
        return self._pages[project]


@contextmanager
def _told(what: str) -> Iterator[None]:
    """Raise SourceError for what an index may answer in place of a file or page."""
    import requests
    from pypi_simple import NoSuchProjectError, UnsupportedContentTypeError

    try:
        yield
    except (requests.RequestException, NoSuchProjectError, UnsupportedContentTypeError, OSError) as error:
        why = " ".join(str(error).split())[:200]
        raise SourceError(f"{what}: cannot be downloaded ({why}): run it again") from error


def _release(package: DistributionPackage) -> IndexedRelease | None:
    sha256 = (package.digests or {}).get("sha256")
    if package.package_type != "sdist" or package.is_yanked or not sha256 or not package.filename.endswith(".tar.gz"):
        return None
    try:
        if Version(package.version or "").is_prerelease:
            return None
        archive = Archive(project=package.project or "", file=package.filename, sha256=sha256)
    except ValueError:
        return None
    return IndexedRelease(str(package.version), package.requires_python or "", archive)


def pip_settings() -> Mapping[str, str]:
    """Return pip's settings for this user and machine, environment variables first, e.g. ``index-url`` and ``cert``.

    Where this Python has no pip, only PIP_INDEX_URL, PIP_CERT and PIP_PROXY are read.
    """
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "config", "list"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    settings = parse_pip_settings(listed.stdout) if listed.returncode == 0 else {}
    for key, variable in (("index-url", "PIP_INDEX_URL"), ("cert", "PIP_CERT"), ("proxy", "PIP_PROXY")):
        if os.environ.get(variable):
            settings[key] = os.environ[variable]
    return settings


def parse_pip_settings(listing: str) -> dict[str, str]:
    """Parse ``pip config list``: lines of ``SECTION.KEY='VALUE'``; of these ``global`` and ``download`` apply."""
    settings: dict[str, str] = {}
    for line in listing.splitlines():
        name, _, value = line.partition("=")
        section, _, key = name.rpartition(".")
        if section not in ("global", "download"):
            continue
        try:
            settings[key] = str(ast.literal_eval(value))
        except (ValueError, SyntaxError):
            continue
    return settings
