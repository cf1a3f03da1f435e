"""A pair and its wheels as text for releases.toml."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tomlkit

from pytest_otval.sources.releases.pairs import Pair, PinnedFile


def found_entry(pair: Pair, wheels: Mapping[str, PinnedFile]) -> str:
    """Return what is to be put into releases.toml for a pair; lines for ``[wheels]`` are comments."""
    lines = wheel_lines(wheels).splitlines()
    return "".join(["# into [wheels]:\n"] * bool(lines) + [f"# {line}\n" for line in lines]) + pair_entry(pair)


def pair_entry(pair: Pair) -> str:
    """Return the ``[[pair]]`` table, without what has its default."""
    lines = ["[[pair]]"]
    for name, value in pair.model_dump(exclude_defaults=True).items():
        lines += _lines(name, value)
    return "".join(f"{line}\n" for line in lines)


def wheel_lines(wheels: Mapping[str, PinnedFile]) -> str:
    """Return lines of the table ``[wheels]``."""
    return "".join(f"{_text(pin)} = {_value(file.model_dump())}\n" for pin, file in sorted(wheels.items()))


def _lines(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, Sequence) and not isinstance(value, str) and len(value) > 1:
        yield f"{name} = ["
        yield from (f"  {_value(one)}," for one in value)
        yield "]"
    else:
        yield f"{name} = {_value(value)}"


def _value(value: Any) -> str:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{key} = {_value(one)}' for key, one in value.items())} }}"
    if isinstance(value, Sequence):
        return f"[{', '.join(map(_value, value))}]"
    return str(value)


def _text(value: str) -> str:
    return tomlkit.string(value).as_string()
