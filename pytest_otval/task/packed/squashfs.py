"""Tasks in one squashfs image, whose top folders are tasks. Nothing is mounted, and of a task only itself is read."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, partial
from pathlib import Path

from pytest_otval.task.packed.base import TASK_TOML, PackedSource, is_task_name, unusable
from pytest_otval.task.packed.image import Image, Inode, Place
from pytest_otval.task.packed.unpack import MAX_DEPTH, DamagedError, Entry, Kind


class SquashfsSource(PackedSource):
    """``tasks.sqfs``."""

    def __init__(self, dataset: Path, file: Path) -> None:
        super().__init__(dataset)
        self._file = file
        self._places: dict[str, Place] = {}

    def anchor(self, name: str) -> Path:
        """Return the image."""
        return self._file

    @cached_property
    def _image(self) -> Image:
        return Image(self._file)

    def _read_names(self) -> tuple[set[str], set[str]]:
        tasks: set[str] = set()
        try:
            image = self._image
            for raw, place, kind in image.listing(image.root()):
                name = raw.decode("utf-8", "surrogateescape")
                if kind is Kind.FOLDER and is_task_name(name):
                    self._places[name] = place
                    if any(inner == TASK_TOML for inner, _, _ in image.listing(image.inode(place))):
                        tasks.add(name)
        except (DamagedError, OSError) as error:
            raise unusable(self._file, error) from None
        return tasks, self._places.keys() - tasks

    def _entries(self, name: str) -> Iterator[Entry]:
        yield from self._below(self._image.inode(self._places[name]), b"", MAX_DEPTH)

    def _below(self, folder: Inode, path: bytes, depth: int) -> Iterator[Entry]:
        image = self._image
        for name, place, _ in image.listing(folder):
            if b"/" in name or name in (b".", b".."):
                raise DamagedError("a name that cannot be one")
            inode = image.inode(place)
            whole = path + name
            content = partial(image.content, inode)
            yield Entry(whole, inode.kind, inode.executable, inode.target, content)
            # A folder that holds itself is as deep as one that is too deep: its writer refuses both.
            if inode.kind is Kind.FOLDER and depth:
                yield from self._below(inode, whole + b"/", depth - 1)
