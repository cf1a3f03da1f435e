"""A runtime's manifest in the cache, and the JSON file by which a task names its runtime.

The cache holds ``CHECKSUM.sqfs`` and ``CHECKSUM.json``, named by the sha256 of the former; the latter is written last,
so it also says that the runtime is complete. A task names id and checksum: of one id there may be several contents.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from pytest_otval.core import Conclusion
from pytest_otval.images.locks import write_whole
from pytest_otval.task.reading import NotReadableError, read_regular
from pytest_otval.task.saved import PREFIX, RUNTIME_ID

FORMAT = 1
"""Of the manifest: one of another format is none."""

TASK_JSON = "ot-task-runtime.json"
"""In setup_files/: the runtime of the agent."""
VERIFIER_JSON = "ot-verifier-runtime.json"
"""In tests/: the runtime of the verifier."""

ROOT = "/opt/otval/runtimes"
"""Where runtimes lie in containers, if their recipe does not say otherwise."""

CHECKSUM = re.compile(r"[0-9a-f]{64}")
_PART = r"[A-Za-z0-9][A-Za-z0-9._+-]*"
PATH = re.compile(rf"(?:/{_PART})+")
"""What a runtime's folder may be called: it stands in mount options."""
PATH_BELOW = re.compile(rf"{_PART}(?:/{_PART})*")
"""What its Python may be called, below that folder."""
KINDS = ("dpkg", "pip", "npm")
"""Ways of installing that a manifest tells of."""
_MADE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\+00:00")
"""One form alone, so that times are in the order of their texts."""
_MAX_JSON_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Package:
    """Something installed in a runtime."""

    version: str
    licence: str = ""
    """As the package itself says it; empty where it says nothing."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """A runtime of the cache."""

    checksum: str
    """sha256 of the squashfs, 64 hex digits."""
    id: str
    """``NAME-`` and 12 hex digits over what it was made from."""
    path: str
    """Its folder in containers, and in its squashfs."""
    bytes: int
    """Size of the squashfs."""
    base: str
    """The image that it was made in, as it was resolved."""
    base_key: str
    python: str = ""
    """Its Python, below ``path``; empty where it has none."""
    made: str = ""
    """UTC, ISO 8601 to the second."""
    packages: Mapping[str, Mapping[str, Package]] = field(default_factory=dict)
    """By way of installing, one of ``KINDS``, and name."""
    files: Mapping[str, str] = field(default_factory=dict)
    """sha256 of each regular file, by its path below ``path``."""

    @property
    def name(self) -> str:
        """What scripts call it."""
        return name_of(self.id)


def name_of(runtime_id: str) -> str:
    """Return the name in an id."""
    return runtime_id.rpartition("-")[0]


def short(checksum: str) -> str:
    """Return as much of a checksum as is shown."""
    return checksum[:12]


def record_path(cache: Path, checksum: str) -> Path:
    """Return where a manifest stands."""
    return cache / f"{checksum}.json"


def squashfs_path(cache: Path, checksum: str) -> Path:
    """Return where a packed runtime stands."""
    return cache / f"{checksum}.sqfs"


def read_record(cache: Path, checksum: str) -> Runtime | None:
    """Return the manifest of a checksum; None where there is none that can be read."""
    try:
        return parse_record(record_path(cache, checksum).read_bytes(), checksum)
    except OSError:
        return None


def parse_record(content: bytes, checksum: str) -> Runtime | None:
    """Return the runtime that a manifest tells of; None for what is no manifest of this checksum. It may be hostile."""
    try:
        values = json.loads(content)
        if values.pop("format") != FORMAT or values["checksum"] != checksum:
            return None
        packages = {
            kind: {name: Package(**package) for name, package in found.items()}
            for kind, found in values.pop("packages").items()
        }
        runtime = Runtime(**values, packages=packages)
        return runtime if _is_right(runtime) else None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _is_right(runtime: Runtime) -> bool:
    """Whether each field of a manifest has the form that it has in those of ours. Raises TypeError, ValueError."""
    packages = [package for found in runtime.packages.values() for package in found.values()]
    texts = [runtime.base, runtime.base_key, runtime.python]
    texts += [text for one in packages for text in (one.version, one.licence)]
    datetime.fromisoformat(runtime.made)
    return (
        all(isinstance(text, str) for text in texts)
        and runtime.packages.keys() <= set(KINDS)
        and type(runtime.bytes) is int
        and runtime.bytes >= 0
        and all(CHECKSUM.fullmatch(digest) for digest in runtime.files.values())
        and bool(
            RUNTIME_ID.fullmatch(runtime.id)
            and PATH.fullmatch(runtime.path)
            and (not runtime.python or PATH_BELOW.fullmatch(runtime.python))
            and _MADE.fullmatch(runtime.made)
        )
    )


def write_record(cache: Path, runtime: Runtime) -> None:
    """Write the manifest of a runtime whose squashfs is in place. Raises OSError."""
    _write_json(record_path(cache, runtime.checksum), {"format": FORMAT, **asdict(runtime)})


def records(cache: Path) -> Iterator[Runtime]:
    """Yield all runtimes of a cache, by name, the newest of each first. The files are the index."""
    found = (read_record(cache, path.stem) for path in cache.glob("*.json") if CHECKSUM.fullmatch(path.stem))
    by_age = sorted((one for one in found if one is not None), key=lambda one: one.made, reverse=True)
    yield from sorted(by_age, key=lambda one: one.name)


@dataclass(frozen=True, slots=True)
class Reference:
    """What a task says of its runtime."""

    id: str
    checksum: str
    path: str

    @classmethod
    def of(cls, runtime: Runtime) -> Reference:
        """Return what names a runtime."""
        return cls(runtime.id, runtime.checksum, runtime.path)

    @property
    def name(self) -> str:
        """What scripts call it."""
        return name_of(self.id)

    def as_dict(self) -> dict[str, str]:
        """Return what a task's file holds."""
        return {"id": self.id, "checksum": PREFIX + self.checksum, "path": self.path}

    def __str__(self) -> str:
        return f"{self.id}@{PREFIX}{self.checksum}"


def read_reference(file: Path) -> Reference | None:
    """Return the reference that a file of a task holds; None where there is no such file.

    The file is hostile: a link or FIFO is not followed. Raises Conclusion ``bad-task``.
    """
    where = f"{file.parent.name}/{file.name}"
    try:
        values = json.loads(read_regular(file, _MAX_JSON_BYTES))
        reference = Reference(values["id"], values["checksum"].removeprefix(PREFIX), values["path"])
        if not (RUNTIME_ID.fullmatch(reference.id) and CHECKSUM.fullmatch(reference.checksum)):
            raise ValueError("id or checksum is none")
        if not PATH.fullmatch(reference.path):
            raise ValueError("path is none that a runtime can have")
    except FileNotFoundError:
        return None
    except NotReadableError as error:
        raise Conclusion("bad-task", f"{where} {error}") from None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        why = f"{where} names no runtime ({type(error).__name__}): remove it, then --otval-save-runtimes writes it anew"
        raise Conclusion("bad-task", why) from None
    return reference


def write_reference(file: Path, reference: Reference) -> None:
    """Write a task's reference, whole or not at all. Raises OSError."""
    _write_json(file, reference.as_dict())


def _write_json(target: Path, values: Mapping[str, Any]) -> None:
    write_whole(target, f"{json.dumps(values, indent=1)}\n".encode())
