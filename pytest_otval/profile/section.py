"""What sections of a profile have in common: what a table is, and kinds of text that more than one holds."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from pytest_otval.core import NAME

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Section(BaseModel):
    """A table of the file: read once, never changed, and no key in it that we do not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def _name(text: str) -> str:
    if not NAME.fullmatch(text):
        raise ValueError(f"{text!r} must be of letters, digits and . _ - alone")
    return text


def _name_or_empty(text: str) -> str:
    return text and _name(text)


def _variable(text: str) -> str:
    if not _VARIABLE.fullmatch(text):
        raise ValueError(f"{text!r} is no name of a variable, such as WORK")
    return text


def _line(text: str) -> str:
    if not text or not text.isprintable():
        raise ValueError(f"{text!r} must be one line of printable text")
    return text


Count = Annotated[int, Field(ge=1)]
Name = Annotated[str, AfterValidator(_name)]
NameOrEmpty = Annotated[str, AfterValidator(_name_or_empty)]
Variable = Annotated[str, AfterValidator(_variable)]
Line = Annotated[str, AfterValidator(_line)]
