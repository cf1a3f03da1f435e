"""``pkg:NAME`` of ``keep``: which files of an image or of a trial are those of a Python distribution.

One place for both who carries them over and who proposes it. What a trial wrote is never asked: the files that a RECORD
of the agent's names could be anybody's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from fnmatch import translate
from glob import escape

from pytest_otval.images.model import Files
from pytest_otval.trial.installed import modules_of

SITES = (
    "/usr/lib/python3/dist-packages",
    *(
        f"{prefix}/lib/python3*/{kind}-packages"
        for prefix in ("/usr", "/usr/local", "/opt/*", "/opt/*/envs/*")
        for kind in ("site", "dist")
    ),
)
"""Where distributions are looked for (``glob``); environments elsewhere are no part of the system."""

MAX_NAMES = 50
"""Distributions that a proposal tells apart."""

# As a shell's pattern: a star is no first dot.
_SITE = re.compile("|".join(re.escape(site).replace(r"/\*", r"/(?!\.)[^/]*").replace(r"\*", "[^/]*") for site in SITES))
_INFO = re.compile(r"([A-Za-z0-9](?:[A-Za-z0-9._]*[A-Za-z0-9])?)-[^/]*\.(?:dist|egg)-info")


def patterns_of(name: str, files: Files) -> list[str]:
    """Return where the files of a distribution lie (``glob``). Raises OSError and DamagedError."""
    return [f"{site}/{entry}" for site in SITES for entry in sorted(_entries(name, files))]


def changed_packages(paths: Iterable[str], files: Files, is_new: Callable[[str], bool]) -> list[str]:
    """Return the distributions whose metadata is among changed paths, as PyPI compares names, at most ``MAX_NAMES``.

    Those in a site folder that is new are left out. ``files`` are the image's.
    """
    places = dict.fromkeys(map(_place, paths))
    infos = ((site, _INFO.fullmatch(entry)) for site, entry in filter(None, places))
    names = {_normal(info[1]) for site, info in infos if info is not None and not is_new(site)}
    return sorted(names)[:MAX_NAMES]


def kept_with(names: Iterable[str], files: Files) -> Callable[[str], bool]:
    """Return what tells whether a path is kept by keeping these distributions. Raises OSError and DamagedError."""
    entries = re.compile("|".join(translate(entry) for name in names for entry in _entries(name, files)) or r"(?!)")

    def is_kept(path: str) -> bool:
        place = _place(path)
        return place is not None and entries.match(place[1]) is not None

    return is_kept


def _entries(name: str, files: Files) -> set[str]:
    """Return what is a distribution's in a site folder: modules by other names than its own if the image has them."""
    signs = "".join(f"[{sign.lower()}{sign.upper()}]" if sign.isalpha() else sign for sign in name)
    own = re.sub(r"[-_.]+", "[-_.]", signs)
    entries = {f"{own}{end}" for end in ("", ".py", ".*.so", ".libs", "-*.dist-info", "-*.egg-info")}
    modules = modules_of(files, SITES, own) if files else ()
    return entries.union(map(escape, modules))


def _place(path: str) -> tuple[str, str] | None:
    """Return the site folder that a path is in, and the name there; None for a path in none."""
    before, packages, below = path.partition("-packages/")
    site = f"{before}{packages.rstrip('/')}"
    return (site, below.partition("/")[0]) if below and _SITE.fullmatch(site) else None


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
