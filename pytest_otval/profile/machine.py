"""The sections about one machine: how containers run on it, and what they may use."""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from pytest_otval.profile.section import Section

Flavour = Literal["fakeroot-subuid", "fakeroot-preload", "userns", "setuid"]
PublicNetwork = Literal["slirp4netns", "host", "none"]

_CONTAINER_HOME = PurePosixPath("/root")


def _absolute_or_home(path: str) -> str:
    if not path.startswith(("/", "~/")) or ".." in PurePosixPath(path).parts:
        raise ValueError(f"{path!r} must start with / or ~/ and must not hold ..")
    return path


def _preparation(item: str) -> str:
    if item != "toolbox" and not re.fullmatch(r"image:bootstrap:[A-Za-z0-9._-]+", item):
        raise ValueError(f"{item!r} is neither toolbox nor image:bootstrap:RECIPE")
    return item


class SandboxSection(Section):
    """``[sandbox]``."""

    flavours: Annotated[tuple[Flavour, ...], Field(min_length=1)] = (
        "fakeroot-subuid",
        "fakeroot-preload",
        "userns",
        "setuid",
    )
    """Ways to map uids, in order of preference; the first that works when probed is used."""


class NetworkSection(Section):
    """``[network]``."""

    public: PublicNetwork = "slirp4netns"
    """How a phase gets the public network. ``host`` shares the host's namespace, which every ledger line then tells;
    ``none`` is for machines without a network."""


class ScratchSection(Section):
    """``[scratch]``."""

    path: str = ""
    """Node-local folder for writable layers, ``$VARIABLES`` expanded on the node; empty for ``$TMPDIR``."""
    stage_images: Literal["auto", "always", "never"] = "auto"
    """Whether trials run on copies of images in that folder; ``auto``: where the store is on a network file system."""


class BudgetSection(Section):
    """``[budget]``: what all containers on a node together may use, where that is less than all there is."""

    cpus: Annotated[int, Field(ge=1)] | None = None
    """Cores."""
    memory_mb: Annotated[int, Field(ge=1)] | None = None
    """MiB."""
    attempts_per_core: Annotated[int, Field(ge=1)] = 4
    """How many attempts of models may hold a core together: most of their time they wait for their model. Their memory
    and GPUs count in full."""


class QuotaSection(Section):
    """``[quota]``: what the image store may be, on storage that counts files; `image list` and doctor compare."""

    files: Annotated[int, Field(ge=1)] | None = None
    gb: Annotated[float, Field(gt=0)] | None = None
    """In 10^9 bytes."""


class BuildSection(Section):
    """``[build]``: what a build sees of the site's configuration. A trial sees none of it."""

    bind_files: tuple[Annotated[str, AfterValidator(_absolute_or_home)], ...] = ()
    """Files and folders that a build finds at the same path; those that do not exist here are left out."""
    pass_env: tuple[str, ...] = ()
    """Variables that a build gets if they are set here; never recorded in an image."""

    def files(self) -> tuple[tuple[Path, str], ...]:
        """Return what exists of ``bind_files`` as (path here, path in the container); ``~`` is /root there."""
        pairs = (
            (Path(name).expanduser(), str(_CONTAINER_HOME) + name[1:] if name[0] == "~" else name)
            for name in self.bind_files
        )
        return tuple((source, target) for source, target in pairs if os.access(source, os.R_OK))

    def environment(self) -> dict[str, str]:
        """Return what is set of ``pass_env``."""
        return {name: os.environ[name] for name in self.pass_env if name in os.environ}


class SetupSection(Section):
    """``[setup]``."""

    prepare: tuple[Annotated[str, AfterValidator(_preparation)], ...] = ("toolbox",)
    """What set-up makes in advance: ``toolbox``, ``image:bootstrap:RECIPE``."""
