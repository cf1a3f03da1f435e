"""``--ignore``, ``--otval-tasks``, ``--otval-limit``: fewer tasks than the arguments select, before nodes are made."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

from pytest_otval.core import OtvalUsageError
from pytest_otval.glue.selection import DatasetSelection, Selection, absolute
from pytest_otval.task.index import tasks_folder

_WILD = frozenset("*?[")


def leave_out(selection: Selection, paths: Iterable[str], globs: Iterable[str], args: Iterable[str]) -> None:
    """Leave out datasets and tasks whose folders are ignored; as with pytest, not what an argument names."""
    ignored_paths = {absolute(Path(path)) for path in paths}
    ignored_globs = [str(absolute(Path(pattern))) for pattern in globs]
    if not ignored_paths and not ignored_globs:
        return
    named = {absolute(Path(arg.partition("::")[0])) for arg in args}

    def ignored(path: Path) -> bool:
        matches = path in ignored_paths or any(fnmatchcase(str(path), pattern) for pattern in ignored_globs)
        return matches and path not in named

    for name, chosen in list(selection.items()):
        if not chosen.whole:
            continue
        if ignored(chosen.path):
            del selection[name]
            continue
        folder = tasks_folder(chosen.path)
        all_of_them = ignored(folder)
        names = chosen.source.names()[0]
        _take(chosen, [task for task in names if task in chosen.tasks or not (all_of_them or ignored(folder / task))])


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
        _take(chosen, names)


def _take(chosen: DatasetSelection, names: list[str]) -> None:
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
