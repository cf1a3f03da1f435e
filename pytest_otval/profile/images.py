"""The sections about base images: registries, and recipes that stand in for names."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Annotated

from pydantic import AfterValidator, Field

from pytest_otval.profile.section import Section

_REGISTRY_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::\d{1,5})?")
_REPOSITORY = re.compile(r"[a-z0-9]+(?:[._/-]+[a-z0-9]+)*")


def _registry_host(name: str) -> str:
    if not _REGISTRY_HOST.fullmatch(name):
        raise ValueError(f"{name!r} is no host of a registry, such as docker.io or registry.example.org:5000")
    return name


def image_prefix(name: str) -> str:
    """Return HOST or HOST/PATH of images. Raises ValueError for anything else."""
    host, slash, path = name.partition("/")
    known = _REGISTRY_HOST.fullmatch(host) and (not slash or _REPOSITORY.fullmatch(path))
    if not known or not (host == "localhost" or set(host) & {".", ":"}):
        raise ValueError(f"{name!r} is not HOST or HOST/PATH of images, such as docker.io or ghcr.io/owner")
    return name


def _pattern_below_root(pattern: str) -> str:
    if not re.fullmatch(r"(?:/[A-Za-z0-9._+*-]+)+", pattern) or ".." in PurePosixPath(pattern).parts:
        raise ValueError(f"{pattern!r} must be absolute, of letters, digits, . _ + - and * alone, and must not hold ..")
    return pattern


class RegistriesSection(Section):
    """``[registries]``: how registries are asked for base images."""

    pulls: Annotated[int, Field(ge=1)] = 2
    """Images that all runs of a user pull at once on a node."""
    login: tuple[Annotated[str, AfterValidator(_registry_host)], ...] = ("docker.io",)
    """Hosts that may have APPTAINER_DOCKER_USERNAME and APPTAINER_DOCKER_PASSWORD. A task can name any host; log-ins
    kept by ``apptainer registry login`` are by host anyway."""
    plain_http: tuple[Annotated[str, AfterValidator(_registry_host)], ...] = ()
    """Hosts that are spoken to without TLS."""


class ImageNames(Section):
    """One ``[[images]]``: names for which a recipe stands in."""

    names: Annotated[tuple[str, ...], Field(min_length=1)]
    """Image names as a Dockerfile writes them, with their tag."""
    recipe: str


class Recipe(Section):
    """One ``[recipes.NAME]``: a base image made by mmdebstrap from the host's own package mirror."""

    suite: str
    variant: str = "minbase"
    packages: tuple[str, ...] = ()
    """Installed besides what the variant brings."""
    remove: tuple[Annotated[str, AfterValidator(_pattern_below_root)], ...] = ()
    """Shell patterns of files that are removed at the end."""
