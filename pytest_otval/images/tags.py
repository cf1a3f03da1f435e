"""What registries said of names: a tag's digest stays what it was when it was first asked for.

``tags.jsonl``, a line a name and architecture, the first of a name counts. Lines are appended with one write and never
changed, so no lock is needed: where two machines write at once, a line may be lost, and is asked for again.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

from pytest_otval.images.model import ImageConfig
from pytest_otval.images.oci import ARCHITECTURE
from pytest_otval.images.reference import Reference
from pytest_otval.images.registry import RegistryImage


class Tags:
    """The memory of a store, shared by all that use it."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._known: dict[str, RegistryImage] = {}
        self._read = 0
        """Bytes of the file that were read."""

    def known(self, reference: Reference) -> RegistryImage | None:
        """Return what was answered for a name, if it was asked for."""
        key = _key(reference)
        if key not in self._known:
            self._read_on()
        return self._known.get(key)

    def remember(self, reference: Reference, image: RegistryImage) -> RegistryImage:
        """Write down an answer; return the first one, so that all who asked at the same time agree.

        Where the store cannot be written, this process remembers.
        """
        values = {"name": _key(reference), "digest": image.digest, "config": image.config.as_dict()}
        with suppress(OSError):
            self._append(json.dumps(values, sort_keys=True))
        self._read_on()
        return self._known.setdefault(_key(reference), image)

    def _append(self, line: str) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            # The newline before ends what was left half.
            os.write(handle, f"\n{line}\n".encode())
        finally:
            os.close(handle)

    def _read_on(self) -> None:
        try:
            with self._file.open("rb") as file:
                file.seek(self._read)
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    self._read += len(line)
                    self._take(line)
        except OSError:
            return

    def _take(self, line: bytes) -> None:
        try:
            values = json.loads(line)
            image = RegistryImage(str(values["digest"]), ImageConfig.from_dict(values["config"]))
            self._known.setdefault(str(values["name"]), image)
        except (ValueError, TypeError, KeyError, AttributeError):
            return


def _key(reference: Reference) -> str:
    return f"{reference} linux/{ARCHITECTURE}"
