"""The cluster profile: what set-up, builds and sandboxes have to know about a machine or a cluster.

One TOML file a site, ``clusters/NAME.toml``. Unknown keys are errors, since a misspelt one would be ignored in silence.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal

import tomli
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from pytest_otval.core import NAME, OtvalUsageError

Flavour = Literal["fakeroot-subuid", "fakeroot-preload", "userns", "setuid"]
PublicNetwork = Literal["slirp4netns", "host", "none"]

PACKAGED = Path(__file__).parent / "data" / "clusters"
"""The profiles that come with the package."""

_REGISTRY_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::\d{1,5})?")
_REPOSITORY = re.compile(r"[a-z0-9]+(?:[._/-]+[a-z0-9]+)*")
_CONTAINER_HOME = PurePosixPath("/root")


def _absolute_or_home(path: str) -> str:
    if not path.startswith(("/", "~/")) or ".." in PurePosixPath(path).parts:
        raise ValueError(f"{path!r} must start with / or ~/ and must not hold ..")
    return path


def _registry_host(name: str) -> str:
    if not _REGISTRY_HOST.fullmatch(name):
        raise ValueError(f"{name!r} is no host of a registry, such as docker.io or registry.example.org:5000")
    return name


def _image_prefix(name: str) -> str:
    host, slash, path = name.partition("/")
    known = _REGISTRY_HOST.fullmatch(host) and (not slash or _REPOSITORY.fullmatch(path))
    if not known or not (host == "localhost" or set(host) & {".", ":"}):
        raise ValueError(f"{name!r} is not HOST or HOST/PATH of images, such as docker.io or ghcr.io/owner")
    return name


def _pattern_below_root(pattern: str) -> str:
    if not re.fullmatch(r"(?:/[A-Za-z0-9._+*-]+)+", pattern) or ".." in PurePosixPath(pattern).parts:
        raise ValueError(f"{pattern!r} must be absolute, of letters, digits, . _ + - and * alone, and must not hold ..")
    return pattern


def _preparation(item: str) -> str:
    if item != "toolbox" and not re.fullmatch(r"image:bootstrap:[A-Za-z0-9._-]+", item):
        raise ValueError(f"{item!r} is neither toolbox nor image:bootstrap:RECIPE")
    return item


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SandboxSection(_Section):
    """``[sandbox]``."""

    flavours: Annotated[tuple[Flavour, ...], Field(min_length=1)] = (
        "fakeroot-subuid",
        "fakeroot-preload",
        "userns",
        "setuid",
    )
    """Ways to map uids, in order of preference; the first that works when probed is used."""


class NetworkSection(_Section):
    """``[network]``."""

    public: PublicNetwork = "slirp4netns"
    """How a phase gets the public network. ``host`` shares the host's namespace, which every ledger line then tells;
    ``none`` is for machines without a network."""


class ScratchSection(_Section):
    """``[scratch]``."""

    path: str = ""
    """Node-local folder for writable layers, ``$VARIABLES`` expanded on the node; empty for ``$TMPDIR``."""
    stage_images: Literal["auto", "always", "never"] = "auto"
    """Whether trials run on copies of images in that folder; ``auto``: where the store is on a network file system."""


class BudgetSection(_Section):
    """``[budget]``: what all containers on a node together may use, where that is less than all there is."""

    cpus: Annotated[int, Field(ge=1)] | None = None
    """Cores."""
    memory_mb: Annotated[int, Field(ge=1)] | None = None
    """MiB."""


class QuotaSection(_Section):
    """``[quota]``: what the image store may be, on storage that counts files; `image list` and doctor compare."""

    files: Annotated[int, Field(ge=1)] | None = None
    gb: Annotated[float, Field(gt=0)] | None = None
    """In 10^9 bytes."""


class BuildSection(_Section):
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


class RegistriesSection(_Section):
    """``[registries]``: how registries are asked for base images."""

    pulls: Annotated[int, Field(ge=1)] = 2
    """Images that all runs of a user pull at once on a node."""
    login: tuple[Annotated[str, AfterValidator(_registry_host)], ...] = ("docker.io",)
    """Hosts that may have APPTAINER_DOCKER_USERNAME and APPTAINER_DOCKER_PASSWORD. A task can name any host; log-ins
    kept by ``apptainer registry login`` are by host anyway."""
    plain_http: tuple[Annotated[str, AfterValidator(_registry_host)], ...] = ()
    """Hosts that are spoken to without TLS."""


class ImageNames(_Section):
    """One ``[[images]]``: names for which a recipe stands in."""

    names: Annotated[tuple[str, ...], Field(min_length=1)]
    """Image names as a Dockerfile writes them, with their tag."""
    recipe: str


class Recipe(_Section):
    """One ``[recipes.NAME]``: a base image made by mmdebstrap from the host's own package mirror."""

    suite: str
    variant: str = "minbase"
    packages: tuple[str, ...] = ()
    """Installed besides what the variant brings."""
    remove: tuple[Annotated[str, AfterValidator(_pattern_below_root)], ...] = ()
    """Shell patterns of files that are removed at the end."""


class SetupSection(_Section):
    """``[setup]``."""

    prepare: tuple[Annotated[str, AfterValidator(_preparation)], ...] = ("toolbox",)
    """What set-up makes in advance: ``toolbox``, ``image:bootstrap:RECIPE``."""


class Profile(_Section):
    """A whole cluster profile."""

    name: str
    sandbox: SandboxSection = SandboxSection()
    network: NetworkSection = NetworkSection()
    scratch: ScratchSection = ScratchSection()
    budget: BudgetSection = BudgetSection()
    quota: QuotaSection = QuotaSection()
    build: BuildSection = BuildSection()
    image_sources: Annotated[tuple[str, ...], Field(min_length=1)] = ("registry", "bootstrap")
    """Where base images come from, first to answer wins; plugins may give others."""
    registries: RegistriesSection = RegistriesSection()
    mirrors: Mapping[Annotated[str, AfterValidator(_image_prefix)], Annotated[str, AfterValidator(_image_prefix)]] = {}
    """``[mirrors]``: HOST[/PATH] of image names to the HOST[/PATH] where this site has the same. Names, digests and
    keys stay the original's; what a mirror cannot give is asked of the original."""
    images: tuple[ImageNames, ...] = ()
    recipes: Mapping[str, Recipe] = {}
    setup: SetupSection = SetupSection()

    @model_validator(mode="after")
    def _recipes_exist(self) -> Profile:
        seen: set[str] = set()
        for entry in self.images:
            if entry.recipe not in self.recipes:
                raise ValueError(
                    f"[[images]] names the recipe {entry.recipe!r}, but there is no [recipes.{entry.recipe}]"
                )
            for name in entry.names:
                if name in seen:
                    raise ValueError(f"[[images]] gives {name!r} two recipes")
                seen.add(name)
        for item in self.setup.prepare:
            recipe = item.removeprefix("image:bootstrap:")
            if recipe != item and recipe not in self.recipes:
                raise ValueError(f"[setup] prepare names {item!r}, but there is no [recipes.{recipe}]")
        return self

    def recipe_name(self, image: str) -> str | None:
        """Return the name of the recipe that stands in for an image name, or None."""
        return next((entry.recipe for entry in self.images if image in entry.names), None)


def load_profile(name: str, rootdir: Path | None = None) -> Profile:
    """Return the profile ``name``.

    Looked for as ``clusters/NAME.toml`` in ``rootdir`` (the cwd if None), in ``$OT_WORKSPACE`` and in the package.
    Raises OtvalUsageError, one line, where there is none or it is wrong.
    """
    if not NAME.fullmatch(name):
        raise OtvalUsageError(f"cluster {name!r} is no name of a profile: letters, digits and . _ - only")
    folders = _folders(rootdir or Path.cwd())
    for folder in folders:
        file = folder / f"{name}.toml"
        if file.is_file():
            return _read(name, file)
    known = sorted({file.stem for folder in folders for file in folder.glob("*.toml")})
    raise OtvalUsageError(f"there is no cluster profile {name!r}{_suggest(name, known)}; known: {', '.join(known)}")


def _folders(rootdir: Path) -> tuple[Path, ...]:
    workspace = os.environ.get("OT_WORKSPACE", "")
    in_workspace = (Path(workspace) / "clusters",) if workspace else ()
    return (rootdir / "clusters", *in_workspace, PACKAGED)


def _read(name: str, file: Path) -> Profile:
    try:
        values = tomli.loads(file.read_text(encoding="utf-8"))
    except (tomli.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise OtvalUsageError(f"{file}: cannot be read: {error}") from None
    if "name" in values:
        raise OtvalUsageError(f"{file}: unknown key 'name': a profile's name is its file's")
    try:
        return Profile(name=name, **values)
    except ValidationError as error:
        raise OtvalUsageError(f"{file}: {_first_error(error)}") from None


def _first_error(error: ValidationError) -> str:
    """Say the first error in one line; the rest shows once it is mended."""
    first = error.errors()[0]
    path: Sequence[int | str] = first["loc"]
    if first["type"] == "extra_forbidden":
        return f"unknown key {_dotted(path)!r}{_suggest(str(path[-1]), _fields_at(path[:-1]))}"
    message = first["msg"].removeprefix("Value error, ")
    return f"{_dotted(path)}: {message}" if path else message


def _dotted(path: Sequence[int | str]) -> str:
    return ".".join(str(part) for part in path)


def _fields_at(path: Sequence[int | str]) -> Sequence[str]:
    """Return the keys that the section at ``path`` knows."""
    if not path:
        return [field for field in Profile.model_fields if field != "name"]
    sections = {"images": ImageNames, "recipes": Recipe}
    section = sections.get(str(path[0])) or Profile.model_fields[str(path[0])].annotation
    return list(getattr(section, "model_fields", {}))


def _suggest(word: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(word, known, n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
