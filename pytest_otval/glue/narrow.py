"""``--otval-tasks`` and ``--otval-limit``: fewer tasks of what the arguments select, before any node is made."""

from __future__ import annotations

import difflib
from fnmatch import fnmatchcase

from pytest_otval.core import OtvalUsageError
from pytest_otval.glue.selection import DatasetSelection, Selection

_WILD = frozenset("*?[")


def narrow(selection: Selection, patterns: str, limit: int) -> None:
    """Keep of each dataset the tasks whose names match, and of those the first ``limit`` by name (0: all).

    ``patterns`` are shell patterns with commas between them; empty: all tasks. The dataset's own item is no task: it
    stays with its dataset as long as one of its tasks does.
    Raises OtvalUsageError for a pattern that matches nothing in any dataset: it is as wrong as an unknown task.
    """
    wanted = patterns.split(",") if patterns else []
    if not wanted and not limit:
        return
    unused = set(wanted)
    left: dict[str, list[str]] = {}
    for dataset, chosen in selection.items():
        names = _candidates(chosen, wanted)
        if wanted:
            matches = {pattern: [name for name in names if fnmatchcase(name, pattern)] for pattern in wanted}
            unused -= {pattern for pattern, matching in matches.items() if matching}
            names = list({name for matching in matches.values() for name in matching})
        left[dataset] = sorted(names)[: limit or None]
    if unused:
        raise OtvalUsageError(_no_match(selection, next(pattern for pattern in wanted if pattern in unused)))
    for dataset, names in left.items():
        chosen = selection[dataset]
        if not names and not chosen.own_stages:
            del selection[dataset]
            continue
        chosen.tasks = {name: None if chosen.whole else chosen.tasks[name] for name in names}
        chosen.own_stages = chosen.own_stages or chosen.whole
        chosen.whole = False


def _candidates(chosen: DatasetSelection, wanted: list[str]) -> list[str]:
    if not chosen.whole:
        return list(chosen.tasks)
    if wanted and not any(_WILD & set(pattern) for pattern in wanted):
        # Plain names need no list of all tasks.
        return [name for name in wanted if name and chosen.source.has(name)]
    return chosen.source.names()[0]


def _no_match(selection: Selection, pattern: str) -> str:
    names = [
        name for chosen in selection.values() for name in (chosen.source.names()[0] if chosen.whole else chosen.tasks)
    ]
    near = difflib.get_close_matches(pattern.strip("*?"), names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"--otval-tasks: {pattern!r} matches no task of {', '.join(sorted(selection))}{hint}"
