"""Which base image stands behind a name: a registry's by digest, a recipe's by digest, or a file's by digest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from filelock import FileLock

from pytest_otval.core import Conclusion, OtvalUsageError
from pytest_otval.images.bootstrap import recipe_digest
from pytest_otval.images.model import ImageConfig
from pytest_otval.images.registry import (
    NoAnswerError,
    NotThereError,
    Reference,
    RefusedError,
    Registry,
    RegistryImage,
    parse_reference,
)
from pytest_otval.profile import Profile

FILE_SUFFIXES = (".sif", ".sqfs")
"""``docker_image`` values with these ends are files, not names."""


@dataclass(frozen=True, slots=True)
class Base:
    """A base that is known exactly, though perhaps not here yet. One of the last three is set."""

    name: str
    """What stands in keys and results; never a tag."""
    config: ImageConfig
    reference: str = ""
    """``HOST/PATH@sha256:...`` for a registry."""
    recipe: str = ""
    file: Path | None = None


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
    """Registries that speak the OCI distribution protocol. Remembers what they answered."""

    name = "registry"

    def __init__(self, store: Path, registry: Registry | None = None, offline: bool = False) -> None:
        """``store`` holds ``tags.json``, where a tag's digest stays once it was resolved."""
        self._tags = store / "tags.json"
        self._registry = registry or Registry()
        self._offline = offline
        self._silent: dict[str, str] = {}

    def resolve(self, image: str) -> Base | None:
        """See ``ImageSource``."""
        reference = parse_reference(image)
        known = self._remembered().get(_tag_key(reference))
        if known is not None:
            found = RegistryImage(known["digest"], ImageConfig.from_dict(known["config"]))
        else:
            found = self._ask(reference)
            self._remember(reference, found)
        exact = f"{reference.repository}@{found.digest}"
        return Base(exact, found.config, reference=exact)

    def _ask(self, reference: Reference) -> RegistryImage:
        if self._offline:
            raise NoAnswerError(f"{reference.host} is not asked, this run is offline")
        if reference.host in self._silent:
            raise NoAnswerError(self._silent[reference.host])
        try:
            return self._registry.resolve(reference)
        except NoAnswerError as error:
            self._silent[reference.host] = str(error)
            raise

    def _remembered(self) -> dict[str, Any]:
        try:
            tags = json.loads(self._tags.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return tags if isinstance(tags, dict) else {}

    def _remember(self, reference: Reference, image: RegistryImage) -> None:
        self._tags.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(self._tags.with_suffix(".lock")):
            tags = self._remembered()
            # The first to ask decides, so that the workers of a run agree.
            tags.setdefault(_tag_key(reference), {"digest": image.digest, "config": image.config.as_dict()})
            new = self._tags.with_suffix(".tmp")
            new.write_text(json.dumps(tags, indent=1, sort_keys=True) + "\n", encoding="utf-8")
            new.replace(self._tags)


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
            raise Conclusion("build-failed", f"{where} {name}: {error}") from None
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

    def file(self, path: Path, where: str) -> Base:
        """Return the base in an image file. Raises Conclusion ``base-unavailable`` where there is none."""
        try:
            digest = file_digest(path)
        except OSError as error:
            raise Conclusion("base-unavailable", f"{where} {path}: {error.strerror}") from None
        return Base(f"file@sha256:{digest}", ImageConfig(), file=path)


def own_sources(
    store: Path, profile: Profile, offline: bool = False, registry: Registry | None = None
) -> list[ImageSource]:
    """Return our own sources."""
    return [RegistrySource(store, registry, offline), RecipeSource(profile)]


def recipe_base(profile: Profile, name: str) -> Base:
    """Return the base of a recipe of a profile. Raises KeyError."""
    digest = recipe_digest(profile.recipes[name])
    return Base(f"bootstrap:{name}@{digest[:12]}", ImageConfig(cmd=("bash",)), recipe=name)


def file_digest(path: Path) -> str:
    """Return the sha256 of a file as 64 hex digits. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _tag_key(reference: Reference) -> str:
    return f"{reference.repository}@{reference.digest}" if reference.digest else str(reference)
