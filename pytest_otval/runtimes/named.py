"""Naming runtimes in the metadata of a dataset, so that tasks that are prepared anew find them again."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomli

from pytest_otval.core import Conclusion
from pytest_otval.images.locks import half_name, locked
from pytest_otval.task.dataset import MAX_TOML_BYTES, load_dataset
from pytest_otval.task.reading import NotReadableError, read_regular
from pytest_otval.task.saved import PREFIX, TABLE


class NotNamedError(Exception):
    """A dataset.toml stays as it is; the text says why, in one line."""


def name_in_dataset(file: Path, named: Mapping[str, str]) -> None:
    """Write checksums by ids into ``[otval.runtimes]`` of a dataset.toml, whole or not at all.

    One process at a time does so. Without such a file nothing is written: a folder is made a dataset by nobody else
    than its owner. Raises NotNamedError.
    """
    if not (named and os.path.lexists(file)):
        return
    try:
        with locked(file.with_name(f".{file.name}.lock")):
            before = read_regular(file, MAX_TOML_BYTES)
            after = with_named(before, named)
            if after != before:
                _write(file, after)
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
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        text = content.decode()
        wanted = _merged(tomli.loads(text), named)
        document = tomlkit.parse(text)
        ours = document.setdefault("otval", tomlkit.table(is_super_table=True))
        table = ours.setdefault(TABLE, tomlkit.table())
        for name, checksum in sorted(named.items()):
            table[name] = PREFIX + checksum
        written = tomlkit.dumps(document)
        if tomli.loads(written) != wanted:
            raise ValueError("it cannot be edited")
        return written.encode()
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError, TOMLKitError) as error:
        why = " ".join(str(error).split())[:200]
        raise NotNamedError(f"dataset.toml cannot take a table [otval.{TABLE}]: {why}") from None


def with_named_before(content: bytes, before: Path) -> bytes:
    """Return a dataset.toml that is about to replace ``before``, with the runtimes that the latter names.

    Raises NotNamedError.
    """
    named = load_dataset(before.parent).settings.runtimes if before.exists() else {}
    return with_named(content, named) if named else content


def _merged(data: dict[str, Any], named: Mapping[str, str]) -> dict[str, Any]:
    ours = data.get("otval", {})
    lines = {name: PREFIX + checksum for name, checksum in named.items()}
    return {**data, "otval": {**ours, TABLE: {**ours.get(TABLE, {}), **lines}}}


def _write(target: Path, content: bytes) -> None:
    half = half_name(target)
    try:
        with half.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            os.fchmod(file.fileno(), target.stat().st_mode & 0o777)
        half.replace(target)
    finally:
        half.unlink(missing_ok=True)
