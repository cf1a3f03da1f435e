"""Images in tar archives: OCI's layout and what ``docker save`` writes. An archive of a task may be made to harm.

Nothing is unpacked by name: parts are looked up among the archive's members, and each must have the digest that it is
asked for by. The formats are https://github.com/opencontainers/image-spec/blob/main/image-layout.md and
https://github.com/moby/docker-image-spec/blob/main/spec.md.
"""

from __future__ import annotations

import hashlib
import json
import os
import posixpath
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from pydantic import BaseModel, TypeAdapter, ValidationError

from pytest_otval.core import printable
from pytest_otval.images.oci import (
    MAX_JSON,
    OCI_CONFIG,
    OCI_LAYER,
    OCI_MANIFEST,
    Content,
    Manifest,
    OciImage,
    RefusedError,
    find_image,
    for_this_machine,
    read_config,
    write_layout,
)
from pytest_otval.task.packed.tarball import GZIP_MAGIC, Member, members
from pytest_otval.task.packed.unpack import DamagedError, Kind
from pytest_otval.task.reading import NotReadableError, open_regular

_MAX_MEMBERS = 10_000


class _Saved(BaseModel):
    """One entry of ``manifest.json``."""

    Config: str
    Layers: tuple[str, ...]


_SAVED = TypeAdapter(tuple[_Saved, ...])


@dataclass(frozen=True, slots=True)
class Archive:
    """An archive that is open: the image in it for this machine, and where its parts are read."""

    image: OciImage
    """Its digest is the manifest's, or of what ``docker save`` wrote the configuration's, which names all layers."""
    content: Content

    def write_layout(self, folder: Path) -> None:
        """Write the image as an OCI layout. Raises RefusedError where a part is missing or damaged; OSError."""
        with _as_refusal():
            write_layout(self.image, self.content, folder)


@contextmanager
def open_archive(path: Path) -> Iterator[Archive]:
    """Open an archive, whichever of both forms it has. Raises RefusedError."""
    try:
        handle = open_regular(path)
    except (NotReadableError, FileNotFoundError, ValueError) as error:
        raise RefusedError(error.strerror if isinstance(error, OSError) else str(error)) from None
    with os.fdopen(handle, "rb") as file:
        with _as_refusal():
            archive = _opened(file)
        yield archive


def _opened(file: BinaryIO) -> Archive:
    if file.read(len(GZIP_MAGIC)) == GZIP_MAGIC:
        raise RefusedError("it is compressed: unpack it with gunzip first")
    found: dict[str, Member] = {}
    for member in members(file):
        found[posixpath.normpath(member.name.decode("utf-8", "surrogateescape"))] = member
        if len(found) > _MAX_MEMBERS:
            raise RefusedError(f"it has more than {_MAX_MEMBERS} members")
    if "index.json" in found:
        layout = _Layout(found)
        return Archive(find_image(layout, for_this_machine(_small(found, "index.json"))), layout)
    if "manifest.json" in found:
        return _saved(found)
    raise RefusedError("it has neither index.json nor manifest.json, so it is no archive of an image")


@dataclass(frozen=True, slots=True)
class _Layout:
    """Content of an OCI layout; see ``oci.Content``."""

    found: dict[str, Member]

    def manifest(self, digest: str) -> bytes:
        return self.blob(digest)

    def blob(self, digest: str) -> bytes:
        data = _small(self.found, _blob(digest))
        _require(hashlib.sha256(data).hexdigest(), digest)
        return data

    def copy(self, digest: str, target: Path) -> None:
        _copy(_member(self.found, _blob(digest)), digest, target)


@dataclass(frozen=True, slots=True)
class _SavedContent:
    """Content of what ``docker save`` wrote before it wrote OCI layouts."""

    found: dict[str, Member]
    names: dict[str, str]
    """Members by digest."""

    def manifest(self, digest: str) -> bytes:
        raise RefusedError(f"it has no manifest {digest}")

    def blob(self, digest: str) -> bytes:
        return _small(self.found, self.names[digest])

    def copy(self, digest: str, target: Path) -> None:
        _copy(_member(self.found, self.names[digest]), digest, target)


def _saved(found: dict[str, Member]) -> Archive:
    """Describe the image by a manifest of ours. Its layers are not compressed: the configuration has their digests."""
    try:
        entries = _SAVED.validate_json(_small(found, "manifest.json"))
    except ValidationError:
        raise RefusedError("its manifest.json is not one of an image") from None
    if len(entries) != 1:
        raise RefusedError(f"it holds {len(entries)} images: keep one")
    data = _small(found, entries[0].Config)
    config, layers = read_config(data)
    if len(layers) != len(entries[0].Layers):
        raise RefusedError("its manifest.json and its configuration name different layers")
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    names = {digest: entries[0].Config, **dict(zip(layers, map(posixpath.normpath, entries[0].Layers), strict=True))}
    sizes = {layer: _member(found, names[layer]).info.size for layer in layers}
    described = {
        "schemaVersion": 2,
        "mediaType": OCI_MANIFEST,
        "config": {"mediaType": OCI_CONFIG, "digest": digest, "size": len(data)},
        "layers": [{"mediaType": OCI_LAYER, "digest": layer, "size": sizes[layer]} for layer in layers],
    }
    manifest_bytes = json.dumps(described).encode()
    try:
        manifest = Manifest.model_validate_json(manifest_bytes)
    except ValidationError:
        raise RefusedError("its configuration names layers by something else than sha256") from None
    return Archive(OciImage(digest, manifest, manifest_bytes, config), _SavedContent(found, names))


def _member(found: dict[str, Member], name: str) -> Member:
    """Return a regular member; ``docker save`` wrote links for layers that an archive has twice."""
    member = found.get(posixpath.normpath(name))
    if member is not None and member.kind is Kind.LINK:
        member = found.get(posixpath.normpath(posixpath.join(posixpath.dirname(name), member.info.linkname)))
    if member is None or member.kind is not Kind.FILE:
        raise RefusedError(f"it has no file {printable(name[:100])}")
    return member


def _small(found: dict[str, Member], name: str) -> bytes:
    member = _member(found, name)
    if member.info.size > MAX_JSON:
        raise RefusedError(f"{printable(name[:100])} is larger than {MAX_JSON >> 20} MiB")
    return b"".join(member.content())


def _copy(member: Member, digest: str, target: Path) -> None:
    count = hashlib.sha256()
    with target.open("wb") as file:
        for chunk in member.content():
            count.update(chunk)
            file.write(chunk)
    _require(count.hexdigest(), digest)


def _require(found: str, digest: str) -> None:
    if f"sha256:{found}" != digest:
        raise RefusedError(f"it has {digest[:19]} with other bytes")


def _blob(digest: str) -> str:
    return f"blobs/sha256/{digest.removeprefix('sha256:')}"


@contextmanager
def _as_refusal() -> Iterator[None]:
    try:
        yield
    except DamagedError as error:
        raise RefusedError(f"it is damaged: {error}") from None
