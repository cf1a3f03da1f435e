"""Which base image stands behind a name: a registry's by digest, a recipe's by digest, or a file's by digest."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pytest_otval.core import Conclusion, OtvalUsageError, printable
from pytest_otval.images.archives import open_archive
from pytest_otval.images.bootstrap import recipe_digest
from pytest_otval.images.model import ImageConfig
from pytest_otval.images.oci import NoAnswerError, NotThereError, RefusedError
from pytest_otval.images.pulling import ARCHIVE
from pytest_otval.images.reference import parse_reference
from pytest_otval.images.registry import Registry
from pytest_otval.images.tags import Tags
from pytest_otval.profile import Profile
from pytest_otval.task.reading import NotReadableError, open_regular, target_within

FILE_SUFFIXES = (".sif", ".sqfs")
"""``docker_image`` values with these ends are files, not names."""

ARCHIVE_SCHEMES = ("oci-archive:", "docker-archive:")
"""``docker_image`` values with these beginnings are tar archives, whichever of both forms they have."""


@dataclass(frozen=True, slots=True)
class Base:
    """A base that is known exactly, though perhaps not here yet. One of the last three is set."""

    name: str
    """What stands in keys and results; never a tag."""
    config: ImageConfig
    reference: str = ""
    """``HOST/PATH@sha256:...`` for a registry, ``oci-archive:PATH@sha256:...`` for an archive; what is pulled."""
    recipe: str = ""
    file: Path | None = None

    @property
    def needs_network(self) -> bool:
        """Whether it comes from elsewhere, if it is not in the store."""
        return bool(self.recipe) or (self.file is None and not self.reference.startswith(ARCHIVE))


class ImageSource(Protocol):
    """Somewhere base images come from."""

    @property
    def name(self) -> str:
        """What ``image_sources`` of a cluster profile calls it."""

    def resolve(self, image: str) -> Base | None:
        """Return the base behind an image name as a Dockerfile writes it; None where it is not for this source.

        Raises NotThereError where there is no such image, NoAnswerError and RefusedError where that is not known.
        """


class RegistrySource:
    """Registries that speak the OCI distribution protocol, less those of the profile's mirrors that answer instead."""

    name = "registry"

    def __init__(self, store: Path, registry: Registry, offline: bool = False) -> None:
        """``store`` holds the digests of tags that were resolved once; offline, nobody is asked for others."""
        self._tags = Tags(store / "tags.jsonl")
        self._registry = registry
        self._offline = offline

    def resolve(self, image: str) -> Base | None:
        """See ``ImageSource``."""
        reference = parse_reference(image)
        found = self._tags.known(reference)
        if found is None:
            if self._offline:
                raise NoAnswerError(f"{reference.host} is not asked, this run is offline")
            found = self._tags.remember(reference, self._registry.resolve(reference))
        exact = f"{reference.repository}@{found.digest}"
        return Base(exact, found.config, reference=exact)


class RecipeSource:
    """The recipes of the cluster profile, for names that it says they stand in for."""

    name = "bootstrap"

    def __init__(self, profile: Profile) -> None:
        self._profile = profile

    def resolve(self, image: str) -> Base | None:
        """See ``ImageSource``."""
        recipe = self._profile.recipe_name(image)
        return None if recipe is None else recipe_base(self._profile, recipe)


def chosen_sources(profile: Profile, sources: Mapping[str, ImageSource]) -> list[ImageSource]:
    """Return the sources that a profile names, in its order. Raises OtvalUsageError for an unknown one."""
    for name in profile.image_sources:
        if name not in sources:
            known = ", ".join(sources)
            raise OtvalUsageError(f"cluster profile {profile.name}: no image source {name!r}; plugins give {known}")
    return [sources[name] for name in profile.image_sources]


class Bases:
    """Resolves names as the cluster profile says."""

    def __init__(self, profile: Profile, sources: Sequence[ImageSource]) -> None:
        """The first of ``sources`` to answer wins."""
        self._profile = profile
        self._sources = sources

    def resolve(self, name: str, where: str) -> Base:
        """Return the base behind an image name; ``where`` ("FILE:LINE: FROM") begins the headline of a failure.

        Raises Conclusion ``build-failed`` where there can be no such image, else ``base-unavailable``.
        """
        try:
            parse_reference(name)
        except ValueError as error:
            raise Conclusion("build-failed", f"{where}: {error}") from None
        missing, misses = False, []
        for source in self._sources:
            try:
                base = source.resolve(name)
            except NotThereError as error:
                missing = True
                misses.append(str(error))
            except (NoAnswerError, RefusedError) as error:
                misses.append(str(error))
            else:
                if base is not None:
                    return base
                misses.append(f"{source.name} has no such image")
        raise Conclusion("build-failed" if missing else "base-unavailable", f"{where} {name}: {'; '.join(misses)}")

    def recipe(self, name: str) -> Base:
        """Return the base of a recipe of the profile. Raises KeyError."""
        return recipe_base(self._profile, name)

    def docker_image(self, name: str, folder: Path, where: str = "docker_image") -> Base:
        """Return the base behind what ``docker_image`` of a task says: a name, or a file of an image.

        ``NAME`` and ``docker://NAME`` are names; ``PATH.sif``, ``PATH.sqfs``, ``oci-archive:PATH`` and
        ``docker-archive:PATH`` files: absolute, or below ``folder``, the task's, from which no link leads out.
        Raises Conclusion as ``resolve`` does, ``bad-task`` where a file is missing or no good, and
        ``base-unavailable`` where an absolute path leads to none here.
        """
        scheme = next((scheme for scheme in ARCHIVE_SCHEMES if name.startswith(scheme)), "")
        if not scheme and not name.endswith(FILE_SUFFIXES):
            return self.resolve(name.removeprefix("docker://"), where)
        path = _named_file(name.removeprefix(scheme), folder, where)
        if not scheme:
            return self.file(path, where)
        try:
            with open_archive(path) as archive:
                image = archive.image
        except RefusedError as error:
            raise Conclusion("bad-task", f"{where} {printable(name)}: {error}") from None
        except OSError as error:
            raise Conclusion("base-unavailable", f"{where} {printable(name)}: {error.strerror}") from None
        return Base(f"archive@{image.digest}", image.config, reference=f"{ARCHIVE}{path}@{image.digest}")

    def file(self, path: Path, where: str) -> Base:
        """Return the base in a SIF or squashfs file. Raises Conclusion ``base-unavailable`` where there is none."""
        try:
            digest = file_digest(path)
        except OSError as error:
            raise Conclusion("base-unavailable", f"{where} {path}: {error.strerror}") from None
        return Base(f"file@sha256:{digest}", ImageConfig(), file=path)


def _named_file(name: str, folder: Path, where: str) -> Path:
    """Return the file that a task names: a regular one, its path without links."""
    given = Path(name)
    try:
        path = given.resolve(strict=True) if given.is_absolute() else target_within(folder / given, folder)
        if path is not None:
            os.close(open_regular(path))
            return path
        raise Conclusion("bad-task", f"{where} {printable(name)}: there is no such file in the task's folder")
    except (OSError, RuntimeError, ValueError, NotReadableError) as error:
        reason = "base-unavailable" if given.is_absolute() else "bad-task"
        words = error.strerror if isinstance(error, OSError) else error
        raise Conclusion(reason, f"{where} {printable(name)}: {words}") from None


def own_sources(
    store: Path, profile: Profile, offline: bool = False, registry: Registry | None = None
) -> list[ImageSource]:
    """Return our own sources."""
    return [RegistrySource(store, registry or Registry.of(profile), offline), RecipeSource(profile)]


def recipe_base(profile: Profile, name: str) -> Base:
    """Return the base of a recipe of a profile. Raises KeyError."""
    digest = recipe_digest(profile.recipes[name])
    return Base(f"bootstrap:{name}@{digest[:12]}", ImageConfig(cmd=("bash",)), recipe=name)


def file_digest(path: Path) -> str:
    """Return the sha256 of a file as 64 hex digits. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
