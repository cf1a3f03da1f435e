"""A proposal for ``[metadata.otval] keep``: what the solution changed in folders of the system, in few words.

Where a verifier gets the system's folders from the image as it was built, that work would be lost, and graded as none.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Callable, Iterable, Mapping

from pytest_otval.trial.changed import Change
from pytest_otval.trial.distributions import distributions
from pytest_otval.trial.restoring import SYSTEM

_CACHE = "/__pycache__"


def in_system(path: str) -> bool:
    """Whether a path is in a folder of the system."""
    top, _, below = path.lstrip("/").partition("/")
    return top in SYSTEM and below != ""


def proposal(changes: Iterable[Change], records: Mapping[str, str], is_new: Callable[[str], bool]) -> list[str]:
    """Return entries for ``keep``: ``pkg:NAME`` for distributions, else paths; empty where nothing needs to be kept.

    ``is_new`` tells whether the image has nothing at a path: what is in a new folder is kept by the folder. A folder
    that the image has is never kept as a whole: then anything in it would be the agent's. Compiled Python is left out.
    """
    changed = [one for one in changes if in_system(one.path) and f"{_CACHE}/" not in f"{one.path}/"]
    known = distributions(changed, records)
    tops = {_top(one.path, is_new) for one in changed if not known.own(one.path)}
    return [f"pkg:{name}" for name in known.names] + sorted(tops)


def as_toml(entries: Iterable[str]) -> str:
    """Return what is to be written into task.toml, on one line."""
    return f"[metadata.otval] keep = [{', '.join(json.dumps(one) for one in entries)}]"


def _top(path: str, is_new: Callable[[str], bool]) -> str:
    """Return the highest folder above a path that the image does not have, or the path."""
    top, folder = path, posixpath.dirname(path)
    while in_system(folder) and is_new(folder):
        top, folder = folder, posixpath.dirname(folder)
    return top if top == path else f"{top}/"
