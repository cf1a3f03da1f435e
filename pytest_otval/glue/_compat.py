"""What pytest keeps to itself and we use all the same, in one place: pytest 9.0 to 9.2.

``.ci/run --pytest VERSION`` says whether another version still has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any

import pytest


class MarkExpression:
    """The argument of ``-m``, read as pytest reads it."""

    def __init__(self, text: str) -> None:
        """Raises SyntaxError for what is no expression, and ImportError where pytest has no such parser."""
        from _pytest.mark.expression import Expression

        self._expression = Expression.compile(text)

    def matches(self, has: Callable[[str], bool]) -> bool:
        """Whether an item matches, given a function that says whether it has a mark of a name."""
        return bool(self._expression.evaluate(lambda name, /, **arguments: has(name)))


def ini_settings(config: pytest.Config) -> Mapping[str, Any]:
    """Return what the ini file and ``-o`` say; ``config.getini`` cannot tell what was said from a default."""
    return dict(vars(config)["_inicfg"])


def set_ini(config: pytest.Config, name: str, value: object) -> None:
    """Decide what ``config.getini(name)`` answers from now on."""
    vars(config)["_inicache"][name] = value


def search_ini_files_from(outside: Callable[[Path], Path]) -> None:
    """Have pytest, which is about to start in this process, search for an ini file from ``outside(FOLDER)`` upwards.

    ``FOLDER`` is where it would have started. Nothing of a folder that is passed over is opened.
    """
    from _pytest.config import findpaths

    search = findpaths.locate_config

    @wraps(search)
    def search_outside(invocation_dir: Path, args: Iterable[Path]) -> Any:
        return search(outside(invocation_dir), [outside(Path(arg).absolute()) for arg in args])

    findpaths.locate_config = search_outside


def leave_nodes(session: pytest.Session, nextitem: pytest.Item | None) -> None:
    """Tear down the nodes that an earlier item set up and that the next one is not in."""
    vars(session)["_setupstate"].teardown_exact(nextitem)


def junit_writer(config: pytest.Config) -> Any:
    """Return what writes this process's junit file, None where none is written."""
    from _pytest.junitxml import xml_key

    return config.stash.get(xml_key, None)
