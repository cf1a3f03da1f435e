"""Pairs of releases of one package, and the file that lists them, releases.toml beside dataset.toml.

Its layout is described at the head of that of datasets/pypi-releases.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from functools import cached_property
from pathlib import Path
from typing import Annotated

import tomli
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from pytest_otval.core import NAME, OtvalUsageError, printable
from pytest_otval.sources.fetch import Archive
from pytest_otval.sources.files import SourceError, publish_file

PINS = "releases.toml"

_PATH = r"^(?!\.\.?(/|$))[A-Za-z0-9._-]+(/(?!\.\.?(/|$))[A-Za-z0-9._-]+)*\Z"
ShellSafePath = Annotated[str, StringConstraints(pattern=_PATH)]
"""A relative path that stands in a shell script without quotes and never leaves its folder."""


NodeIdPrefix = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._/-]+(::\w+)*\Z")]
"""The start of node ids, such that it stands in a shell script without quotes."""


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", regex_engine="python-re")


class PinnedFile(_Table):
    """A file of a release."""

    file: str
    sha256: str


class Release(_Table):
    """One release's source archive."""

    version: str
    file: str
    sha256: str


class LeftOut(_Table):
    """A test id that is not graded."""

    id: str
    reason: str


class Pair(_Table):
    """Two releases of a package and what tells them apart."""

    package: str
    licence: str
    ci: bool = False
    source_root: ShellSafePath | None = None
    """Folder that must be on Python's path, where it is not the top folder."""
    code: tuple[ShellSafePath, ...] = Field(min_length=1)
    tests: tuple[ShellSafePath, ...] = Field(min_length=1)
    suite: tuple[ShellSafePath, ...] = ()
    deselect: tuple[NodeIdPrefix, ...] = ()
    old: Release
    new: Release
    wheels: tuple[str, ...]
    fail_to_pass: tuple[str, ...] = Field(min_length=1)
    n_pass_to_pass: int
    pass_to_pass_sha256: str
    left_out: tuple[LeftOut, ...] = ()

    @property
    def name(self) -> str:
        """The task's name."""
        return f"{self.package}-{self.new.version}"

    @cached_property
    def left_out_ids(self) -> frozenset[str]:
        """The ids that are not graded."""
        return frozenset(one.id for one in self.left_out)

    @property
    def graded_fail_to_pass(self) -> tuple[str, ...]:
        """The ids that only the new code passes, sorted, less those left out."""
        return tuple(sorted(set(self.fail_to_pass) - self.left_out_ids))

    def sdist(self, release: Release) -> Archive:
        """Return the source archive of one of the two releases."""
        return Archive(project=self.package, file=release.file, sha256=release.sha256)

    def why_not_the_pinned(self, pass_to_pass: Iterable[str]) -> str:
        """Tell why these ids are not the pinned pass_to_pass less those left out, or ""."""
        left_out = self.left_out_ids - set(self.fail_to_pass)
        ids = sorted(set(pass_to_pass) | left_out)
        if len(ids) != self.n_pass_to_pass:
            return f"{len(ids)} pass_to_pass ids, pinned are {self.n_pass_to_pass}"
        digest = ids_digest(ids)
        return "" if digest == self.pass_to_pass_sha256 else f"sha256 of the pass_to_pass ids is {digest}"


def ids_digest(ids: Iterable[str]) -> str:
    """Return the checksum by which ids are pinned."""
    return hashlib.sha256("\n".join(sorted(ids)).encode()).hexdigest()


class Releases(_Table):
    """releases.toml."""

    wheels: dict[str, PinnedFile] = {}
    """By ``PROJECT==VERSION``."""
    pair: tuple[Pair, ...] = ()

    def wheel_archives(self, pair: Pair) -> tuple[Archive, ...]:
        """Return the wheels that a pair's tests need."""
        return tuple(
            Archive(project=pin.partition("==")[0], file=self.wheels[pin].file, sha256=self.wheels[pin].sha256)
            for pin in pair.wheels
        )

    def archives(self, pair: Pair) -> tuple[Archive, ...]:
        """Return all files that a pair needs: both source archives, then the wheels."""
        return (pair.sdist(pair.old), pair.sdist(pair.new), *self.wheel_archives(pair))

    def named(self, only: Collection[str] | None) -> list[Pair]:
        """Return the pairs of these names, or all. Raises OtvalUsageError for a name that no pair has."""
        if unknown := sorted(set(only or ()) - {pair.name for pair in self.pair}):
            raise OtvalUsageError(f"{PINS} has no pair {printable(unknown[0])!r}")
        return [pair for pair in self.pair if only is None or pair.name in only]


def archives_of(path: Path, only: Collection[str] | None = None) -> list[Archive]:
    """Return the files that the named pairs of a releases.toml need, or all pairs. Raises OtvalUsageError."""
    releases = load_releases(path)
    return list(dict.fromkeys(archive for pair in releases.named(only) for archive in releases.archives(pair)))


def load_releases(path: Path) -> Releases:
    """Load releases.toml. Raises OtvalUsageError with the place of the first fault."""
    try:
        releases = Releases.model_validate(tomli.loads(path.read_text(encoding="utf-8")))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise OtvalUsageError(f"{path}: {where}: {first['msg']}") from error
    except (OSError, ValueError) as error:
        raise OtvalUsageError(f"{path}: {error}") from error
    _check(releases, path)
    return releases


def _check(releases: Releases, path: Path) -> None:
    seen: set[str] = set()
    for pair in releases.pair:
        if not NAME.fullmatch(pair.name) or pair.name in seen:
            raise OtvalUsageError(f"{path}: {pair.name!r} cannot be a task's name, or is there twice")
        seen.add(pair.name)
        if missing := [pin for pin in pair.wheels if pin not in releases.wheels]:
            raise OtvalUsageError(f"{path}: {pair.name}: {missing[0]} is not in [wheels]")
        if not pair.graded_fail_to_pass:
            raise OtvalUsageError(f"{path}: {pair.name}: every fail_to_pass id is left out")


def ids_file(folder: Path, pair: Pair) -> Path:
    """Return where a dataset's folder has the ids that pass on both codes of a pair."""
    return folder / "ids" / f"{pair.name}.txt"


def publish_ids(ids: Iterable[str], folder: Path, pair: Pair) -> None:
    """Write a pair's ids into a dataset's folder."""
    publish_file("".join(f"{one}\n" for one in ids).encode(), ids_file(folder, pair))


def read_ids(path: Path) -> tuple[str, ...]:
    """Return the test ids of a file, one a line. Raises SourceError where it cannot be read."""
    try:
        return tuple(path.read_text(encoding="utf-8").removesuffix("\n").split("\n"))
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "is no UTF-8"
        raise SourceError(f"{path}: {why}: make it with `patch.py ids`") from error
