"""What an image is and how one is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pytest_otval.sandbox.base import DEFAULT_PATH, Limits


@dataclass(frozen=True, slots=True)
class ImageConfig:
    """What an image says about how its programs run, as Docker's image configuration does."""

    env: Mapping[str, str] = field(default_factory=lambda: {"PATH": DEFAULT_PATH})
    workdir: str = "/"
    user: str | None = None
    """As USER wrote it: ``name``, ``uid`` or ``name:group``; None is root."""
    entrypoint: tuple[str, ...] = ()
    cmd: tuple[str, ...] = ()
    shell: tuple[str, ...] = ("/bin/sh", "-c")
    labels: Mapping[str, str] = field(default_factory=dict)
    exposed: tuple[str, ...] = ()
    volumes: tuple[str, ...] = ()
    healthcheck: tuple[str, ...] = ()
    """The words of HEALTHCHECK, flags first; recorded, never run."""
    stop_signal: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the configuration in plain JSON types."""
        return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> ImageConfig:
        """Return the configuration that ``as_dict`` gave. Raises TypeError for unknown keys."""
        fields: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in values.items()
        }
        return cls(**fields)


Files = tuple[Path, ...]
"""Of an image: a squashfs with a whole root file system (or one SIF), then those that only add files to it."""


@dataclass(frozen=True, slots=True)
class Image:
    """A packed root file system."""

    key: str
    """sha256 of everything that went into it, 64 hex digits."""
    files: Files
    content: str
    """sha256 of the packed file; of several, over those of all."""
    base: str
    """The base as it was resolved: ``bootstrap:RECIPE@DIGEST``, ``NAME@sha256:DIGEST`` or ``file@sha256:DIGEST``."""
    config: ImageConfig


@dataclass(frozen=True, slots=True)
class ImageRequest:
    """What a task asks for. ``docker_image`` beats the Dockerfile unless a build is forced."""

    context: Path | None
    """Folder that holds the Dockerfile; below the task's folder."""
    docker_image: str | None
    build_timeout_sec: float
    """For all instructions together; waiting for locks, getting the base and packing are not the task's time."""
    limits: Limits = field(default_factory=Limits)
