"""What is published of one task, read from its files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli

from pytest_otval.core import printable
from pytest_otval.sources.fates import Fate
from pytest_otval.task.dataset import MAX_TOML_BYTES, PACKAGE_NAME
from pytest_otval.task.digest import DigestError, harbor_digest, task_digest
from pytest_otval.task.index import TASK_TOML
from pytest_otval.task.reading import NotReadableError, read_regular

_LICENCES = (("metadata", "license"), ("metadata", "licence"), ("task", "license"), ("task", "licence"))
"""Where tasks say it. Harbor has no key of its own for it."""


@dataclass(frozen=True, slots=True)
class Published:
    """A task of an export."""

    name: str
    fate: Fate
    digest: str
    """Ours, by which its answers are known."""
    harbor_name: str
    """``[task].name``; empty where it has none that Harbor takes."""
    harbor: str
    """Harbor's digest; empty where Harbor has none."""
    refusal: str
    """Why Harbor has none."""
    licence: str
    """As task.toml says; empty where it does not."""
    patches: tuple[str, ...]
    """Ids of those that were applied."""

    @property
    def kept(self) -> bool:
        """Whether it holds what it promises."""
        return not self.fate.category


def published(name: str, folder: Path, fate: Fate) -> Published:
    """Return what is published of the task in a folder."""
    document = _document(folder)
    harbor_name = _text(document, "task", "name")
    try:
        harbor, refusal = harbor_digest(folder), ""
    except DigestError as error:
        harbor, refusal = "", printable(str(error))
    return Published(
        name=name,
        fate=fate,
        digest=task_digest(folder),
        harbor_name=harbor_name if PACKAGE_NAME.fullmatch(harbor_name) and ".." not in harbor_name else "",
        harbor=harbor,
        refusal=refusal,
        licence=next(filter(None, (_text(document, *keys) for keys in _LICENCES)), ""),
        patches=tuple(_table(document, "metadata", "otval", "patches")),
    )


def _document(folder: Path) -> Mapping[str, Any]:
    try:
        return tomli.loads(read_regular(folder / TASK_TOML, MAX_TOML_BYTES).decode())
    except (OSError, NotReadableError, ValueError):
        return {}


def _table(document: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    found: Any = document
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def _text(document: Mapping[str, Any], *keys: str) -> str:
    value = _table(document, *keys[:-1]).get(keys[-1])
    return printable(value) if isinstance(value, str) else ""
