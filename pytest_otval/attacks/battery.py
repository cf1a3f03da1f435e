"""The battery: every attack there is, read from one TOML file a family.

An attack is a shell script of less than ten lines that solves nothing. It plants something that makes a verifier pay
which trusts what it should not, and leaves alone a verifier that does not: so that several can be tried at once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import tomli

_FOLDER = Path(__file__).parent
_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
MOST_LINES = 9

NEEDS: Mapping[str, str] = {
    "root": 'test "$(id -u)" = 0',
    "mount": "unshare -m true",
    "bash": 'test -x /bin/bash && test "$(readlink -f /bin/sh)" != "$(readlink -f /bin/bash)"',
    "python3": 'test -n "$STDLIB"',
    "pytest": 'test -n "$PYTEST"',
    "pytest-command": "command -v pytest",
    "git": "git rev-parse --absolute-git-dir",
    "activate": 'test -n "$ACTIVATE"',
    "modules": 'test -n "$MODULES"',
    "paths": 'test -n "$PATHS"',
    "x86-64": 'test "$(uname -m)" = x86_64',
    "glibc": "test -e /lib64/ld-linux-x86-64.so.2",
}
"""What an attack may need, and the command that tells, inside the container, whether it is there."""


@dataclass(frozen=True, slots=True)
class Attack:
    """One attack. It runs in the workdir, as the agent's user, by a POSIX shell with ``-e``.

    Its script may use ``$PAYLOADS`` (a folder with the files of ``payloads``), ``$MODULES`` (Python modules of the
    product, see ``names``), ``$PATHS`` (absolute paths that the instruction names), ``$ACTIVATE`` (activate scripts of
    the image's environments), and of the image's Python ``$STDLIB``, ``$SITE``, ``$USER_SITE`` (folders), ``$PYTEST``
    and ``$RUNNER`` (files of its pytest).
    """

    id: str
    family: str
    shows: str
    """What it shows of a verifier that pays for it."""
    reference: str
    """The reference task that pays for it at isolation ``none``."""
    script: str
    needs: tuple[str, ...] = ()
    union: str = ""
    """Attacks of one union are tried together; empty: alone, since others would not work beside it."""
    remedy: str = ""
    """Of what no container can stop: what the task's tests can do."""


@cache
def battery() -> Mapping[str, Attack]:
    """Return every attack by its id, in the order in which they are tried."""
    found: dict[str, Attack] = {}
    for file in sorted((_FOLDER / "battery").glob("*.toml")):
        for name, table in tomli.loads(file.read_text()).items():
            assert name not in found, name
            found[name] = attack_of(name, file.stem, table)
    return found


def attack_of(name: str, family: str, table: Mapping[str, Any]) -> Attack:
    """Return the attack that a table describes. Raises ValueError or TypeError, naming it."""
    attack = Attack(name, family, **{**table, "needs": tuple(table.get("needs", ()))})
    if not _ID.fullmatch(name):
        raise ValueError(f"{name}: an id is words of a-z and 0-9 with - between them")
    if unknown := set(attack.needs) - NEEDS.keys():
        raise ValueError(f"{name}: there is no need {sorted(unknown)}")
    if not 0 < len(attack.script.strip().splitlines()) <= MOST_LINES:
        raise ValueError(f"{name}: its script has no line, or more than {MOST_LINES}")
    if not (attack.shows and attack.reference):
        raise ValueError(f"{name}: it says nothing of what it shows, or where")
    return attack


@cache
def payloads() -> Mapping[str, str]:
    """Return the text of each file that scripts plant, by its name."""
    return {path.name: path.read_text() for path in sorted((_FOLDER / "payloads").iterdir())}
