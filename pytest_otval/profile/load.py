"""Where profiles lie, and how one is read: an error is one line with its place."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import tomli
from pydantic import ValidationError

from pytest_otval.core import NAME, OtvalUsageError
from pytest_otval.profile.model import Profile
from pytest_otval.profile.section import Section

PACKAGED = Path(__file__).parents[1] / "data" / "clusters"
"""The profiles that come with the package."""


def load_profile(name: str, rootdir: Path | None = None) -> Profile:
    """Return the profile ``name``.

    Looked for as ``clusters/NAME.toml`` in ``rootdir`` (the cwd if None), in ``$OT_WORKSPACE`` and in the package.
    Where its file says ``extends = "OTHER"``, what it does not say is as in that profile: tables are merged, arrays are
    not. Raises OtvalUsageError, one line, where there is none or it is wrong.
    """
    folders = _folders(rootdir or Path.cwd())
    file = _find(name, folders)
    document = _read(file)
    if "name" in document:
        raise OtvalUsageError(f"{file}: unknown key 'name': a profile's name is its file's")
    if "extends" in document:
        below = _read_below(file, document.pop("extends"), folders)
        document = _merged(below, document)
    try:
        return Profile(name=name, **document)
    except ValidationError as error:
        raise OtvalUsageError(f"{file}: {_first_error(error)}") from None


def profile_file(name: str, rootdir: Path | None = None) -> Path:
    """Return the file of a profile, looked for as ``load_profile`` does. Raises OtvalUsageError where there is none."""
    return _find(name, _folders(rootdir or Path.cwd()))


def _read_below(file: Path, name: object, folders: Sequence[Path]) -> dict[str, Any]:
    if not isinstance(name, str):
        raise OtvalUsageError(f"{file}: extends: must be the name of a profile")
    try:
        document = _read(_find(name, folders))
    except OtvalUsageError as error:
        raise OtvalUsageError(f"{file}: extends: {error}") from None
    if "extends" in document:
        raise OtvalUsageError(f"{file}: extends: {name!r} extends another profile itself")
    # They speak for what is in that file.
    document.pop("facts", None)
    return document


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    both = {
        key: _merged(below[key], above[key])
        for key in below.keys() & above.keys()
        if isinstance(below[key], Mapping) and isinstance(above[key], Mapping)
    }
    return {**below, **above, **both}


def _find(name: str, folders: Sequence[Path]) -> Path:
    if not NAME.fullmatch(name):
        raise OtvalUsageError(f"cluster {name!r} is no name of a profile: letters, digits and . _ - only")
    for folder in folders:
        file = folder / f"{name}.toml"
        if file.is_file():
            return file
    known = sorted({file.stem for folder in folders for file in folder.glob("*.toml")})
    raise OtvalUsageError(f"there is no cluster profile {name!r}{_suggest(name, known)}; known: {', '.join(known)}")


def _folders(rootdir: Path) -> tuple[Path, ...]:
    workspace = os.environ.get("OT_WORKSPACE", "")
    in_workspace = (Path(workspace) / "clusters",) if workspace else ()
    return (rootdir / "clusters", *in_workspace, PACKAGED)


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomli.loads(file.read_text(encoding="utf-8"))
    except (tomli.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise OtvalUsageError(f"{file}: cannot be read: {error}") from None


def _first_error(error: ValidationError) -> str:
    """Say the first error in one line; the rest shows once it is mended."""
    first = error.errors()[0]
    path: Sequence[int | str] = first["loc"]
    if first["type"] == "extra_forbidden":
        return f"unknown key {_dotted(path)!r}{_suggest(str(path[-1]), _fields_at(path[:-1]))}"
    message = first["msg"].removeprefix("Value error, ")
    return f"{_dotted(path)}: {message}" if path else message


def _dotted(path: Sequence[int | str]) -> str:
    return ".".join(str(part) for part in path)


def _fields_at(path: Sequence[int | str]) -> Sequence[str]:
    """Return the keys that the section at ``path`` knows; empty where it is no section."""
    section: type[Section] = Profile
    for part in path:
        # Anything else is a name or a number that the file's author gave.
        if part in section.model_fields:
            inner = _section_in(section.model_fields[str(part)].annotation)
            if inner is None:
                return ()
            section = inner
    return [field for field in section.model_fields if (section, field) != (Profile, "name")]


def _section_in(annotation: object) -> type[Section] | None:
    """Return the kind of section that an annotation holds, as ``Mapping[str, X]`` or ``X | None`` do."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return annotation
    return next(filter(None, map(_section_in, get_args(annotation))), None)


def _suggest(word: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(word, known, n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
