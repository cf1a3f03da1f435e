"""Weights of models: brought from the hub once, known by a record with a checksum of each file.

A model's folder is ``ORGANISATION--NAME@REVISION`` in ``$OT_MODELS``; its record ``otval-model.json`` tells the files
that are whole. It is written again after each file, so that a download goes on where it ended, and says in the end that
all are there.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from pytest_otval.core import NAME, OtvalUsageError, printable
from pytest_otval.hub import Hub, HubFile
from pytest_otval.images.locks import locked, write_whole

RECORD = "otval-model.json"
SCHEMA = 1
_OTHER_FORMS = re.compile(r".*\.(?:bin|pth|pt|ckpt|h5|msgpack|onnx|ot|gguf|tflite|png|jpe?g|gif|pdf)")
"""Weights in other forms than safetensors, and pictures; a repository without safetensors is taken as it is."""
_BLOCK = 4 << 20


@dataclass(frozen=True, slots=True)
class File:
    """One file, as it was when it came."""

    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Weights:
    """A model in ``$OT_MODELS``, or on a node's disk."""

    repository: str
    revision: str
    """The full id of the commit."""
    files: Mapping[str, File] = field(default_factory=dict)
    whole: bool = False

    @property
    def name(self) -> str:
        """Of its folder."""
        return f"{self.repository.replace('/', '--')}@{self.revision}"

    @property
    def bytes(self) -> int:
        """Of all files that are there."""
        return sum(file.bytes for file in self.files.values())

    def __str__(self) -> str:
        state = "" if self.whole else "  not whole"
        return f"{self.repository}@{self.revision[:12]}  {len(self.files)} files  {self.bytes / 1e9:.2f} GB{state}"


def read_weights(folder: Path) -> Weights | None:
    """Return what a folder's record says; None where there is none that can be read."""
    try:
        values: dict[str, Any] = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        files = {str(name): File(int(one["bytes"]), str(one["sha256"])) for name, one in values["files"].items()}
        found = Weights(str(values["repository"]), str(values["revision"]), files, values["whole"] is True)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    # Somebody may have renamed it, and names of files become paths.
    return found if found.name == folder.name and all(map(_is_plain, files)) else None


def all_weights(models: Path) -> list[Weights]:
    """Return all models of a folder, by name."""
    folders = sorted(models.glob("*--*@*")) if models.is_dir() else []
    return [found for folder in folders if (found := read_weights(folder)) is not None]


def find_weights(models: Path, repository: str, revision: str | None) -> Weights:
    """Return a model that is whole; without a revision the only one there is. Raises OtvalUsageError."""
    there = [one for one in all_weights(models) if one.repository == repository and revision in (None, one.revision)]
    found = [one for one in there if one.whole]
    if len(found) > 1:
        raise OtvalUsageError(f"{models} has {len(found)} revisions of {repository}: the profile's revision says which")
    if not found:
        state = "is not whole" if there else "is not there"
        raise OtvalUsageError(
            f"{repository} {state} in {models}: run `python -m pytest_otval models download {repository}`"
        )
    return found[0]


def bring(hub: Hub, models: Path) -> Iterator[str]:
    """Bring a model, and yield a line for each file. Raises OtvalUsageError, Conclusion, as Hub does, and OSError."""
    models.mkdir(parents=True, exist_ok=True)
    wanted = Weights(hub.repository, hub.revision)
    folder = models / wanted.name
    with locked(models / f"{wanted.name}.lock"):
        have = read_weights(folder) or wanted
        files = _chosen(hub.files(""))
        if not files:
            raise OtvalUsageError(f"{hub.repository} has no files in its uppermost folder")
        _require_room(models, sum(file.bytes for name, file in files.items() if name not in have.files))
        folder.mkdir(exist_ok=True)
        for name in sorted(set(files) - set(have.files)):
            have = replace(have, files={**have.files, name: _brought(hub, name, files[name], folder)})
            _write(folder, have)
            yield f"{name}  {files[name].bytes / 1e9:.2f} GB"
        if not have.whole:
            _write(folder, replace(have, whole=True))


def _chosen(files: Mapping[str, HubFile]) -> dict[str, HubFile]:
    plain = {name: file for name, file in files.items() if _is_plain(name) and name != RECORD}
    if not any(name.endswith(".safetensors") for name in plain):
        return plain
    return {name: file for name, file in plain.items() if not _OTHER_FORMS.fullmatch(name.lower())}


def _is_plain(name: str) -> bool:
    return bool(NAME.fullmatch(name)) and not name.startswith(".")


def _brought(hub: Hub, name: str, file: HubFile, folder: Path) -> File:
    part = folder / f".{name}.part"
    hub.fetch(name, file.bytes, part)
    sha256, blob, size = _digests(part)
    right = sha256 == file.sha256 if file.sha256 else blob == file.blob
    if size != file.bytes or not right:
        part.unlink()
        raise OtvalUsageError(f"{hub.repository}: {name} came with other content than the hub says: run this again")
    part.replace(folder / name)
    return File(size, sha256)


def _digests(path: Path) -> tuple[str, str, int]:
    """Return a file's sha256, git's id of its content, and its size."""
    size = path.stat().st_size
    sha256, blob = hashlib.sha256(), hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            sha256.update(block)
            blob.update(block)
    return sha256.hexdigest(), blob.hexdigest(), size


def _require_room(folder: Path, size: int) -> None:
    free = shutil.disk_usage(folder).free
    if size > free:
        words = f"{size / 1e9:.1f} GB are needed and {free / 1e9:.1f} GB are free: OT_MODELS names another folder"
        raise OtvalUsageError(f"{folder}: {words}")


def _write(folder: Path, weights: Weights) -> None:
    values = {"schema": SCHEMA, **asdict(weights)}
    write_whole(folder / RECORD, json.dumps(values, indent=1, sort_keys=True).encode())


def faults(models: Path, weights: Weights) -> Iterator[str]:
    """Read all files of a model and yield what is wrong with each that is not as it came. Asks nobody."""
    for name, file in sorted(weights.files.items()):
        path = models / weights.name / name
        try:
            sha256, _, size = _digests(path)
        except OSError as error:
            yield f"{printable(name)}: {error.strerror}"
            continue
        if size != file.bytes:
            yield f"{name}: {size} bytes in place of {file.bytes}"
        elif sha256 != file.sha256:
            yield f"{name}: other content than what came"


def staged(models: Path, weights: Weights, node: Path) -> Path:
    """Return the folder of a copy on the node's own disk, which is made if it is not there; one copy for all processes.

    Checksums are compared on the way. Raises OtvalUsageError: a damaged file, or no room; OSError.
    """
    node.mkdir(parents=True, exist_ok=True)
    folder = node / weights.name
    with locked(node / f"{weights.name}.lock"):
        if read_weights(folder) == weights:
            return folder
        shutil.rmtree(folder, ignore_errors=True)
        _require_room(node, weights.bytes)
        folder.mkdir()
        for name, file in weights.files.items():
            if _copied(models / weights.name / name, folder / name) != file.sha256:
                words = f"{name} is damaged: run `python -m pytest_otval models verify` and download it again"
                raise OtvalUsageError(f"{models / weights.name}: {words}")
        _write(folder, weights)
    return folder


def _copied(source: Path, target: Path) -> str:
    digest = hashlib.sha256()
    with source.open("rb") as file, target.open("wb") as copy:
        while block := file.read(_BLOCK):
            digest.update(block)
            copy.write(block)
        copy.flush()
        os.fsync(copy.fileno())
    return digest.hexdigest()
