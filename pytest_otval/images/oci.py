"""Images as the OCI image specification has them: an index, a manifest and a configuration, all named by digest.

https://github.com/opencontainers/image-spec; Docker's own manifests differ in their media types alone. Layers are
carried as they are: the container runtime unpacks them.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Protocol, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from pytest_otval.core import printable
from pytest_otval.images.model import ImageConfig
from pytest_otval.sandbox.base import DEFAULT_PATH

ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "i686": "386"}.get(
    platform.machine(), platform.machine()
)
"""This machine's architecture as images call it."""

OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
OCI_CONFIG = "application/vnd.oci.image.config.v1+json"
OCI_LAYER = "application/vnd.oci.image.layer.v1.tar"
MANIFESTS = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    OCI_MANIFEST,
    "application/vnd.docker.distribution.manifest.v2+json",
)
"""Media types of what a tag may name."""

MAX_JSON = 4 << 20
"""Bytes of a manifest or a configuration; registries promise no more."""
_MAX_DEPTH = 3


class NoAnswerError(Exception):
    """The registry did not answer; the text says how."""


class NotThereError(Exception):
    """The registry answered that it has no such image."""


class RefusedError(Exception):
    """There is an answer, but no image for this machine: a log-in is needed, the rate is limited, it is damaged."""


def _no_null(text: str) -> str:
    if "\0" in text:
        raise ValueError("it has a null character")
    return text


_Text = Annotated[str, AfterValidator(_no_null)]
_Words = tuple[_Text, ...] | None


class _Json(BaseModel):
    model_config = ConfigDict(frozen=True)


class _Platform(_Json):
    os: str = ""
    architecture: str = ""


class _Descriptor(_Json):
    """What a manifest says about a blob."""

    digest: Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
    platform: _Platform | None = None


class Manifest(_Json):
    """An image's manifest."""

    mediaType: str = OCI_MANIFEST
    config: _Descriptor
    layers: tuple[_Descriptor, ...]


class _Index(_Json):
    manifests: tuple[_Descriptor, ...]


class _RootFs(_Json):
    diff_ids: tuple[str, ...] = ()


class _RunConfig(_Json):
    """The names are Docker's."""

    Env: _Words = None
    WorkingDir: _Text = ""
    User: _Text = ""
    Entrypoint: _Words = None
    Cmd: _Words = None
    Shell: _Words = None
    Labels: Mapping[_Text, _Text] | None = None
    ExposedPorts: Mapping[_Text, Any] | None = None
    Volumes: Mapping[_Text, Any] | None = None
    StopSignal: _Text = ""


class _ConfigFile(_Platform):
    config: _RunConfig | None = None
    rootfs: _RootFs = _RootFs()


class Content(Protocol):
    """Where the parts of an image can be read by digest: a registry, an archive.

    Raises NoAnswerError, NotThereError or RefusedError; what it gives has the digest that was asked for.
    """

    def manifest(self, digest: str) -> bytes:
        """Return a manifest or an index."""

    def blob(self, digest: str) -> bytes:
        """Return a small blob."""

    def copy(self, digest: str, target: Path) -> None:
        """Write a blob of any size to a file."""


@dataclass(frozen=True, slots=True)
class OciImage:
    """An image for this machine."""

    digest: str
    """Of its manifest."""
    manifest: Manifest
    manifest_bytes: bytes
    config: ImageConfig


def find_image(content: Content, digest: str, depth: int = 0) -> OciImage:
    """Return what a digest names, for this machine where it is an index. Raises what ``content`` does."""
    data = content.manifest(digest)
    if b'"manifests"' in data:
        if depth == _MAX_DEPTH:
            raise RefusedError("its index leads to index after index")
        return find_image(content, for_this_machine(data), depth + 1)
    manifest = _parsed(Manifest, data, "manifest")
    config, _ = read_config(content.blob(manifest.config.digest))
    return OciImage(digest, manifest, data, config)


def for_this_machine(index: bytes) -> str:
    """Return the digest of the image in an index for this machine. Raises RefusedError where there is none, or two."""
    entries = _parsed(_Index, index, "index").manifests
    found = {entry.digest for entry in entries if _is_ours(entry.platform or _Platform())}
    if len(found) == 1:
        return found.pop()
    if found:
        raise RefusedError(f"it holds {len(found)} images for this machine: keep one")
    others = sorted({_words(entry.platform) for entry in entries if entry.platform} - {"unknown/unknown"})
    raise RefusedError(f"there is no image for linux/{ARCHITECTURE}, only for {', '.join(others[:10]) or 'nothing'}")


def read_config(data: bytes) -> tuple[ImageConfig, tuple[str, ...]]:
    """Return an image's configuration, and the digests of its layers without compression.

    Raises RefusedError where it is none, or of another architecture.
    """
    file = _parsed(_ConfigFile, data, "configuration")
    if not _is_ours(file):
        raise RefusedError(f"it is for {_words(file)}, and this machine is linux/{ARCHITECTURE}")
    return _image_config(file.config or _RunConfig()), file.rootfs.diff_ids


def write_layout(image: OciImage, content: Content, folder: Path) -> None:
    """Write an image as an OCI layout, which runtimes read; blobs that another try left there are not read again.

    Raises what ``content`` does, and OSError.
    """
    blobs = folder / "blobs" / "sha256"
    blobs.mkdir(parents=True, exist_ok=True)
    for digest in dict.fromkeys(layer.digest for layer in (image.manifest.config, *image.manifest.layers)):
        target = blobs / digest.removeprefix("sha256:")
        if not target.exists():
            content.copy(digest, target.with_suffix(".part"))
            target.with_suffix(".part").rename(target)
    name = hashlib.sha256(image.manifest_bytes).hexdigest()
    (blobs / name).write_bytes(image.manifest_bytes)
    entry = {
        "mediaType": image.manifest.mediaType,
        "digest": f"sha256:{name}",
        "size": len(image.manifest_bytes),
    }
    (folder / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [entry]}), encoding="utf-8")
    (folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}', encoding="utf-8")


def _is_ours(where: _Platform) -> bool:
    """What does not say where it runs is taken for ours until its configuration says otherwise."""
    return where.os in ("", "linux") and where.architecture in ("", ARCHITECTURE)


def _words(where: _Platform | None) -> str:
    return printable(f"{where.os or 'linux'}/{where.architecture}")[:40] if where else ""


def _image_config(config: _RunConfig) -> ImageConfig:
    env = dict(entry.split("=", 1) for entry in config.Env or () if "=" in entry)
    return ImageConfig(
        env={"PATH": DEFAULT_PATH} | env,
        workdir=config.WorkingDir or "/",
        user=config.User or None,
        entrypoint=config.Entrypoint or (),
        cmd=config.Cmd or (),
        shell=config.Shell or ("/bin/sh", "-c"),
        labels=dict(config.Labels or {}),
        exposed=tuple(config.ExposedPorts or ()),
        volumes=tuple(config.Volumes or ()),
        stop_signal=config.StopSignal,
    )


_Model = TypeVar("_Model", bound=BaseModel)


def _parsed(model: type[_Model], data: bytes, what: str) -> _Model:
    try:
        return model.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = printable(".".join(map(str, first["loc"][:4])))[:80]
        raise RefusedError(
            f"its {what} is not one of an image: {where + ': ' if where else ''}{first['msg']}"
        ) from None
