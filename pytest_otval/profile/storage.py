"""``[modules]`` and ``[storage]``: what an environment at a site needs, and where files can lie."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from pytest_otval.profile.section import Count, Line, Section, Variable

_EXPORT = re.compile(r"OT_STORAGE_[A-Z0-9_]+")
_MODULE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+/-]*")
_PATH = re.compile(r"/[A-Za-z0-9._+/-]*")


def _module(text: str) -> str:
    if not _MODULE.fullmatch(text):
        raise ValueError(f"{text!r} is no name of a module, such as cuda/12.8.1")
    return text


def _export(text: str) -> str:
    if not _EXPORT.fullmatch(text):
        raise ValueError(f"{text!r} is no name as OT_STORAGE_WORK")
    return text


def _path(text: str) -> str:
    if not _PATH.fullmatch(text) or ".." in text.split("/"):
        raise ValueError(f"{text!r} must be absolute, of letters, digits and . _ + - / alone, without ..")
    return text


class ModulesSection(Section):
    """``[modules]``: environment modules that set-up and jobs load, through ``env.sh``."""

    load: tuple[Annotated[str, AfterValidator(_module)], ...] = ()
    """Names, in this order."""
    init: tuple[Annotated[str, AfterValidator(_path)], ...] = ()
    """Files that define ``module``, sourced where it is no command yet, as in jobs before a login shell. Those that are
    missing are passed over."""


class StorageSection(Section):
    """One ``[storage.NAME]``: a place of the site for files, and what a user may keep there."""

    variable: Variable | None = None
    """The site's variable that holds the place, such as ``WORK``; or"""
    path: Annotated[str, AfterValidator(_path)] | None = None
    """the place itself."""
    exports: Annotated[str, AfterValidator(_export)]
    """What ``env.sh`` calls it; unset where the site's variable is."""
    purpose: Line
    """What is kept there, one line."""
    gb_soft: Annotated[float, Field(gt=0)] | None = None
    """In 10^9 bytes, as the hard limit; None where there is no limit, or none is known."""
    gb_hard: Annotated[float, Field(gt=0)] | None = None
    files_soft: Count | None = None
    """Files and folders, as the hard limit."""
    files_hard: Count | None = None

    @model_validator(mode="after")
    def _consistent(self) -> StorageSection:
        if (self.variable is None) == (self.path is None):
            raise ValueError("a storage has either a variable or a path")
        for soft, hard, name in ((self.gb_soft, self.gb_hard, "gb"), (self.files_soft, self.files_hard, "files")):
            if soft is not None and hard is not None and soft > hard:
                raise ValueError(f"{name}_soft {soft:g} is more than {name}_hard {hard:g}")
        return self
