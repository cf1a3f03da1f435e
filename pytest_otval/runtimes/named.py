"""Entries in tables of dataset.toml: runtimes, so that tasks that are prepared anew find them again, and others."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomli

from pytest_otval.core import Conclusion
from pytest_otval.images.locks import locked, write_whole
from pytest_otval.task.dataset import MAX_TOML_BYTES, load_dataset
from pytest_otval.task.reading import NotReadableError, read_regular
from pytest_otval.task.saved import PREFIX, TABLE


class NotNamedError(Exception):
    """A dataset.toml stays as it is; the text says why, in one line."""


def name_in_dataset(file: Path, named: Mapping[str, str]) -> None:
    """Write checksums by ids into ``[otval.runtimes]`` of a dataset.toml, if there is one: see ``add_to_dataset``."""
    add_to_dataset(file, TABLE, _lines(named))


def add_to_dataset(file: Path, table: str, entries: Mapping[str, str]) -> None:
    """Write entries into ``[otval.TABLE]`` of a dataset.toml, whole or not at all.

    One process at a time does so. Without such a file nothing is written: a folder is made a dataset by nobody else
    than its owner. Raises NotNamedError.
    """
    if not (entries and os.path.lexists(file)):
        return
    try:
        with locked(file.with_name(f".{file.name}.lock")):
            before = read_regular(file, MAX_TOML_BYTES)
            after = _with_entries(before, table, entries)
            if after != before:
                write_whole(file, after, file.stat().st_mode & 0o777)
    except NotReadableError as error:
        raise NotNamedError(f"{file} {error}") from None
    except Conclusion as conclusion:
        raise NotNamedError(conclusion.headline) from None
    except OSError as error:
        raise NotNamedError(f"{file} cannot be written: {error.strerror or error}") from None


def with_named(content: bytes, named: Mapping[str, str]) -> bytes:
    """Return a dataset.toml that also names these runtimes; all else, comments too, is as it was.

    Raises NotNamedError.
    """
    return _with_entries(content, TABLE, _lines(named))


def _with_entries(content: bytes, name: str, entries: Mapping[str, str]) -> bytes:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        text = content.decode()
        before = tomli.loads(text)
        wanted = _merged(before, name, entries)
        if before == wanted:
            # Parsing it for editing takes long where a dataset has many tasks.
            return content
        document = tomlkit.parse(text)
        ours = document.setdefault("otval", tomlkit.table(is_super_table=True))
        table = ours.setdefault(name, tomlkit.table())
        for key, value in sorted(entries.items()):
            table[key] = value
        written = tomlkit.dumps(document)
        if tomli.loads(written) != wanted:
            raise ValueError("it cannot be edited")
        return written.encode()
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError, TOMLKitError) as error:
        why = " ".join(str(error).split())[:200]
        raise NotNamedError(f"dataset.toml cannot take a table [otval.{name}]: {why}") from None


def with_named_before(content: bytes, before: Path) -> bytes:
    """Return a dataset.toml that is about to replace ``before``, with the runtimes that the latter names.

    Raises NotNamedError.
    """
    named = load_dataset(before.parent).settings.runtimes if before.exists() else {}
    return with_named(content, named) if named else content


def _lines(named: Mapping[str, str]) -> dict[str, str]:
    return {name: PREFIX + checksum for name, checksum in named.items()}


def _merged(data: dict[str, Any], table: str, entries: Mapping[str, str]) -> dict[str, Any]:
    ours = data.get("otval", {})
    return {**data, "otval": {**ours, table: {**ours.get(table, {}), **entries}}}
