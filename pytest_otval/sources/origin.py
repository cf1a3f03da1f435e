"""Where a dataset comes from: ``[otval.source]`` of its dataset.toml, brought once, verified, and kept as it is."""

from __future__ import annotations

import fnmatch
import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import tomli
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pytest_otval.core import Conclusion, OtvalUsageError, printable
from pytest_otval.hub import Hub, HubFile
from pytest_otval.images.bases import file_digest
from pytest_otval.images.locks import write_whole
from pytest_otval.images.oci import NoAnswerError, RefusedError
from pytest_otval.images.transport import StatusError, Transport
from pytest_otval.sources.fetch import Archive, PackageIndex, fetch_files
from pytest_otval.sources.fetch import is_fetched as is_file_fetched
from pytest_otval.sources.files import SourceError
from pytest_otval.sources.releases.pairs import PINS, archives_of
from pytest_otval.sources.upstream import Clone, check_out, clones, fetch_commit, load_pins
from pytest_otval.task.dataset import DATASET_TOML, OF_SOURCES
from pytest_otval.task.digest import task_digest

RECORD = "fetched.json"
"""Beside what was fetched, written last: it says that all of it is there, and what its digest is."""
_SILENCE = 60.0
"""Seconds for which a host may say nothing."""


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    licence: str = ""
    """SPDX expression of what is fetched, or where its terms stand."""


class GitSource(_Table):
    """A commit of a git repository."""

    kind: Literal["git"]
    url: str
    commit: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
    folder: str = ""
    """The folder of it that is read."""


class HubSource(_Table):
    """Files of a dataset repository of the Hugging Face hub."""

    kind: Literal["huggingface"]
    repository: str
    revision: Annotated[str, Field(pattern=r"^([0-9a-f]{40})?$")] = ""
    """Empty: none was chosen yet, and nothing is fetched."""
    files: Annotated[tuple[str, ...], Field(min_length=1)]
    """Paths; the last part may be a pattern as of a shell."""
    sha256: tuple[str, ...] = ()
    """Of the files, in their order; files that the hub keeps as large ones have theirs there."""


class ArchiveSource(_Table):
    """One file behind an address."""

    kind: Literal["archive"]
    url: str
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class LocalSource(_Table):
    """A folder or file of this machine; relative to dataset.toml."""

    kind: Literal["local"]
    path: str


class UpstreamSource(_Table):
    """A repository that is pinned for all adapters, ``pytest_otval/data/upstream.toml``."""

    kind: Literal["upstream"]
    name: str
    folder: str = ""
    """The folder of it that is read."""


class IndexSource(_Table):
    """Source archives and wheels of the package index that pip is configured for: those that releases.toml pins."""

    kind: Literal["package-index"]
    only: tuple[str, ...] | None = None
    """Names of the pairs whose files are wanted; all where none are named."""

    def archives(self, dataset: Path) -> list[Archive]:
        """Return the files. Raises OtvalUsageError."""
        return archives_of(dataset / PINS, self.only)


Source = Annotated[
    GitSource | HubSource | ArchiveSource | LocalSource | UpstreamSource | IndexSource, Field(discriminator="kind")
]


class Recipe(BaseModel):
    """How a dataset is made."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: Source
    adapter: str = "harbor"
    """Which adapter makes tasks of it."""
    options: dict[str, Any] = {}
    """Of the adapter."""
    images: dict[str, Annotated[str, Field(min_length=1)]] = {}
    """Names of images, as tasks have them, and what stands in their place."""


def read_recipe(dataset: Path) -> Recipe:
    """Return the recipe in a dataset's dataset.toml. Raises OtvalUsageError where it has none or a wrong one."""
    file = dataset / DATASET_TOML
    try:
        ours = tomli.loads(file.read_text(encoding="utf-8")).get("otval", {})
        return Recipe(**{name: ours[name] for name in OF_SOURCES if name in ours})
    except (OSError, UnicodeDecodeError, tomli.TOMLDecodeError) as error:
        raise OtvalUsageError(f"{file} cannot be read: {error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise OtvalUsageError(f"{file}: otval.{where}: {first['msg']}") from None


def fetch(recipe: Recipe, dataset: Path, folder: Path) -> str:
    """Bring a source below ``folder`` unless it is there; return a line that says what is there.

    It is there whole and verified, or not at all; of a package index that is true of each file. Raises SourceError.
    """
    if isinstance(recipe.source, IndexSource):
        count = fetch_files(recipe.source.archives(dataset), folder, PackageIndex())
        return f"{count} files fetched" if count else "is fetched"
    target = _target(recipe.source, folder)
    if isinstance(recipe.source, LocalSource):
        return f"lies at {_local(recipe.source, dataset)}"
    if isinstance(recipe.source, UpstreamSource):
        clone = _clone(recipe.source, folder)
        if not clone.problem():
            return "is fetched"
        clone.make()
        return "fetched"
    if (target / RECORD).is_file():
        return "is fetched"
    folder.mkdir(parents=True, exist_ok=True)
    with _new(target) as part:
        _BRING[recipe.source.kind](recipe.source, part / "data")
        write_whole(part / RECORD, json.dumps({"digest": task_digest(part / "data")}).encode())
    return "fetched"


class Fetched(NamedTuple):
    """A source that is there."""

    path: Path
    digest: str
    """Of all that it holds."""


def fetched(recipe: Recipe, dataset: Path, folder: Path) -> Fetched:
    """Return where the source lies. Raises SourceError where it is not fetched, or was changed since.

    Whether files of a package index were changed is seen by who reads them.
    """
    source = recipe.source
    if isinstance(source, IndexSource):
        archives = source.archives(dataset)
        missing = [archive.file for archive in archives if not is_file_fetched(archive, folder)]
        if missing:
            raise SourceError(f"{missing[0]} of {dataset.name} is not fetched: patch.py fetch")
        pinned = "".join(f"{archive.file} {archive.sha256}\n" for archive in archives)
        return Fetched(folder, f"sha256:{hashlib.sha256(pinned.encode()).hexdigest()}")
    if isinstance(source, LocalSource):
        path = _local(source, dataset)
        return Fetched(path, task_digest(path) if path.is_dir() else file_digest(path))
    if isinstance(source, UpstreamSource):
        clone = _clone(source, folder)
        if problem := clone.problem():
            raise SourceError(f"{clone.path} {problem}: patch.py fetch")
        return Fetched(clone.path / source.folder, f"git:{clone.pin.tree}")
    target = _target(source, folder)
    try:
        digest = json.loads((target / RECORD).read_bytes())["digest"]
    except (OSError, ValueError, KeyError, TypeError):
        raise SourceError(f"the source of {dataset.name} is not fetched: patch.py fetch") from None
    if task_digest(target / "data") != digest:
        raise SourceError(f"{target} was changed since it was fetched: remove it, then patch.py fetch")
    below = source.folder if isinstance(source, GitSource) else ""
    return Fetched(target / "data" / below, digest)


def is_fetched(recipe: Recipe, dataset: Path, folder: Path) -> bool:
    """Whether the source is there; its content is not looked at."""
    if isinstance(recipe.source, LocalSource):
        return (dataset / recipe.source.path).exists()
    if isinstance(recipe.source, UpstreamSource):
        return not _clone(recipe.source, folder).problem()
    if isinstance(recipe.source, IndexSource):
        return all(is_file_fetched(archive, folder) for archive in recipe.source.archives(dataset))
    return (_target(recipe.source, folder) / RECORD).is_file()


def _target(source: BaseModel, folder: Path) -> Path:
    pinned = json.dumps(source.model_dump(exclude={"licence", "folder"}), sort_keys=True)
    return folder / hashlib.sha256(pinned.encode()).hexdigest()[:16]


def _clone(source: UpstreamSource, folder: Path) -> Clone:
    """Return the clone in the workspace, whose ``datasets/.sources/NAME`` the folder is. Raises SourceError."""
    with resources.as_file(resources.files("pytest_otval") / "data" / "upstream.toml") as pins:
        try:
            (clone,) = clones(load_pins(pins), folder.parents[2], [source.name])
        except OtvalUsageError as error:
            raise SourceError(str(error)) from None
    return clone


def _local(source: LocalSource, dataset: Path) -> Path:
    path = (dataset / source.path).resolve()
    if not path.exists():
        raise SourceError(f"there is no {path}: bring it there, or change [otval.source] path")
    return path


@contextmanager
def _new(target: Path) -> Iterator[Path]:
    part = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        yield part
        if target.exists():
            shutil.rmtree(target)
        part.rename(target)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _git(source: GitSource, target: Path) -> None:
    """Bring the files of one commit, links as links."""
    target.mkdir()
    try:
        fetch_commit(target, source.url, source.commit, links=True)
        check_out(target, source.commit)
    except SourceError as error:
        raise SourceError(f"{source.url} at {source.commit[:12]}: {error}") from None
    shutil.rmtree(target / ".git")


def _archive(source: ArchiveSource, target: Path) -> None:
    target.mkdir()
    name = source.url.rpartition("/")[2] or "archive"
    try:
        Transport(_SILENCE).save(source.url, target / name, f"sha256:{source.sha256}")
    except (StatusError, NoAnswerError, RefusedError, OSError) as error:
        raise SourceError(f"{source.url}: {error}") from None


def _hub(source: HubSource, target: Path) -> None:
    if not source.revision:
        commits = f"https://huggingface.co/datasets/{source.repository}/commits/main"
        raise SourceError(f"no revision is pinned: write `revision` into [otval.source], a commit of {commits}")
    try:
        hub = Hub(source.repository, source.revision)
        for number, (path, known) in enumerate(_named(hub, source)):
            place = target / path
            place.parent.mkdir(parents=True, exist_ok=True)
            hub.fetch(path, known.bytes, place)
            wanted = source.sha256[number] if number < len(source.sha256) else known.sha256
            if wanted and file_digest(place) != wanted:
                raise SourceError(f"{source.repository}/{printable(path)} does not match its checksum")
    except (OtvalUsageError, Conclusion) as error:
        raise SourceError(str(error)) from None


def _named(hub: Hub, source: HubSource) -> Iterator[tuple[str, HubFile]]:
    """Yield the files that are wanted. Raises SourceError where a name or pattern has none."""
    for path in source.files:
        above, _, pattern = path.rpartition("/")
        there = hub.files(above)
        # What is called like a pattern is meant itself.
        names = [pattern] if pattern in there else fnmatch.filter(sorted(there), pattern)
        if not names:
            raise SourceError(f"{source.repository} has no file {printable(path)} at {source.revision[:12]}")
        for name in names:
            if "/" in name or name in (".", ".."):
                raise SourceError(f"{source.repository} has a file that is called {printable(name)}")
            yield f"{above}/{name}" if above else name, there[name]


_BRING: dict[str, Callable[[Any, Path], None]] = {"git": _git, "archive": _archive, "huggingface": _hub}
