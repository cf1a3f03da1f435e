"""Rubrics are files: criteria with ids, of one kind. Those of Harbor are read, too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

import tomli
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from pytest_otval.core import NAME, OtvalUsageError, printable
from pytest_otval.judge.model import KINDS, Criterion, Kind, Rubric
from pytest_otval.task.lines import Lines

PACKAGED = Path(__file__).parents[1] / "data"
"""Where ``rubrics/`` of the package is."""
MOST_CRITERIA = 100
"""No model answers so many with care."""

_Id = Annotated[str, StringConstraints(pattern=rf"^{NAME.pattern}$", max_length=60)]
_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=4000)]


class _Criterion(BaseModel):
    """Unknown keys are errors, since a misspelt ``blocking`` would be ignored in silence."""

    model_config = ConfigDict(extra="forbid")

    id: _Id = Field(validation_alias=AliasChoices("id", "name"))
    question: _Text = Field(validation_alias=AliasChoices("question", "description"))
    guidance: Annotated[str, StringConstraints(strip_whitespace=True, max_length=4000)] = ""
    blocking: bool = False
    execution: Literal["", "wrong-solution", "right-solution"] = ""
    not_applicable: bool = True


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    kind: Kind = "instruction"
    criteria: Annotated[list[_Criterion], Field(min_length=1, max_length=MOST_CRITERIA)]


def read_rubric(path: Path) -> Rubric:
    """Return the rubric of a file: ``kind`` and ``[[criteria]]`` (docs/rubrics.md).

    Harbor's files have ``name`` and ``description`` where ours have ``id`` and ``question``, and no ``kind``: without
    one it is ``instruction``. Raises OtvalUsageError, one line with file, line and criterion.
    """
    try:
        source = path.read_bytes().decode()
        document = tomli.loads(source)
    except tomli.TOMLDecodeError as error:
        raise OtvalUsageError(f"{path}:{error.lineno}: is no TOML: {error.msg}") from None
    except (ValueError, RecursionError) as error:
        raise OtvalUsageError(f"{path}: is no TOML that can be read: {type(error).__name__}") from None
    except OSError as error:
        raise OtvalUsageError(f"{path}: cannot be read: {error.strerror or error}") from None
    try:
        file = _File(**document)
    except ValidationError as error:
        raise OtvalUsageError(_first_error(path, source, document, error)) from None
    seen: dict[str, int] = {}
    for number, one in enumerate(file.criteria):
        if seen.setdefault(one.id, number) != number:
            line = Lines(source).of(("criteria", number))
            raise OtvalUsageError(f"{path}:{line}: there is a criterion {one.id!r} already: give it another id")
    return Rubric(file.kind, tuple(Criterion(**dict(one)) for one in file.criteria), str(path))


def own_rubric(kind: Kind, places: Sequence[Path]) -> Rubric:
    """Return the rubric ``rubrics/KIND.toml`` of the first of these folders that has one, else the package's.

    Raises OtvalUsageError as ``read_rubric``, and for a rubric of another kind.
    """
    files = [place / "rubrics" / f"{kind}.toml" for place in (*places, PACKAGED)]
    file = next((one for one in files if one.is_file()), files[-1])
    rubric = read_rubric(file)
    if rubric.kind != kind:
        raise OtvalUsageError(f'{file}: is of kind {rubric.kind!r}: write kind = "{kind}", or rename it')
    return rubric


def rubrics(files: Iterable[str | Path], places: Sequence[Path]) -> Mapping[Kind, Rubric]:
    """Return a rubric of each kind: that of a file, else as ``own_rubric`` finds it. Raises OtvalUsageError."""
    given: dict[Kind, Rubric] = {}
    for rubric in map(read_rubric, map(Path, files)):
        if rubric.kind in given:
            raise OtvalUsageError(f"{given[rubric.kind].source} and {rubric.source} are both of kind {rubric.kind!r}")
        given[rubric.kind] = rubric
    return {kind: given.get(kind) or own_rubric(kind, places) for kind in KINDS}


def _first_error(path: Path, source: str, document: dict[str, object], error: ValidationError) -> str:
    """Say the first error in one line; the rest shows once it is mended."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    where = first["loc"]
    line = Lines(source).of(tuple(where))
    words = f"{path}:{line}: " if line else f"{path}: "
    if len(where) > 1 and isinstance(where[1], int):
        words += f"criterion {where[1] + 1}{_named(document, where[1])}: "
    key = where[-1] if isinstance(where[-1], str) else "it"
    if first["type"] == "extra_forbidden":
        return f"{words}unknown key {printable(key)!r}"
    if first["type"] == "missing":
        return f"{words}there is no {key}"
    return f"{words}{key}: {first['msg']}"


def _named(document: dict[str, object], number: int) -> str:
    """Return the id of a criterion of a document that is no rubric, if it has one."""
    criteria = document.get("criteria")
    one = criteria[number] if isinstance(criteria, list) else None
    id = (one.get("id") or one.get("name")) if isinstance(one, dict) else None
    return f" ({printable(id)[:60]})" if isinstance(id, str) else ""
