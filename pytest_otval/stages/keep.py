"""A proposal for ``[metadata.otval] keep``: what the solution changed in folders of the system, in few words.

Where a verifier gets the system's folders from the image as it was built, that work would be lost, and graded as none.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

from pytest_otval.images.model import Files
from pytest_otval.task.keep import PACKAGE
from pytest_otval.trial.changed import Change
from pytest_otval.trial.packages import changed_packages, kept_with
from pytest_otval.trial.restoring import SYSTEM

MAX_ENTRIES = 100
MAX_SIGNS = 16 * 1024
"""Of all entries together."""

_CACHE = "/__pycache__/"
_FOLDERS = 4096
"""Of the image, whose being there is remembered."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """Entries for ``keep``."""

    entries: tuple[str, ...] = ()
    more: int = 0
    """Entries that are too many, or that no task.toml can hold: with a line end, or in no known encoding."""


def in_system(path: str) -> bool:
    """Whether a path is in a folder of the system."""
    top, _, below = path.lstrip("/").partition("/")
    return top in SYSTEM and below != ""


def proposal(changes: Iterable[Change], files: Files, is_new: Callable[[str], bool]) -> Proposal:
    """Return what ``keep`` has to name: ``pkg:NAME`` for distributions, else paths; none where nothing is to be kept.

    ``files`` are the image's; ``is_new`` tells whether it has no folder at a path: what is in a new folder is kept by
    the folder. A folder that the image has is never kept as a whole: then anything in it would be the agent's. Compiled
    Python is left out. Raises OSError and DamagedError where the image cannot be read.
    """
    is_new = lru_cache(maxsize=_FOLDERS)(is_new)
    paths = [one.path for one in changes if in_system(one.path) and _CACHE not in f"{one.path}/"]
    names = changed_packages(paths, files, is_new)
    is_kept = kept_with(names, files)
    tops = {_top(path, is_new) for path in paths if not is_kept(path)}
    return _bounded([f"{PACKAGE}{name}" for name in names] + sorted(tops))


def _bounded(entries: list[str]) -> Proposal:
    kept, signs = list[str](), 0
    for entry in filter(str.isprintable, entries):
        signs += len(entry)
        if len(kept) == MAX_ENTRIES or signs > MAX_SIGNS:
            break
        kept.append(entry)
    return Proposal(tuple(kept), len(entries) - len(kept))


def as_toml(entries: Iterable[str]) -> str:
    """Return what is to be written into task.toml, on one line."""
    return f"[metadata.otval] keep = [{', '.join(json.dumps(one, ensure_ascii=False) for one in entries)}]"


def _top(path: str, is_new: Callable[[str], bool]) -> str:
    """Return the highest folder above a path that the image does not have, or the path."""
    # From the top, since below a new folder all is new: a path may have thousands of folders.
    end = path.find("/", path.find("/", 1) + 1)
    while end > 0:
        if is_new(path[:end]):
            return f"{path[:end]}/"
        end = path.find("/", end + 1)
    return path
