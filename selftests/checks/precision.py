"""Precision and recall of each check over all miniature tasks.

    python -m selftests.checks.precision [ID...] [--json] [--all]

Of a check's own faults, ``found`` are those found on the expected line; of its near misses, ``false`` are those where
it finds anything. Precision is found / (found + false), recall found / faults. ``elsewhere`` counts the miniature tasks
of other checks in which it finds something too: in a task with another fault it may be right, so that is no mistake by
itself. Only checks with a mistake are listed unless ``--all`` is given; the exit status is 1 where there is one.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_otval.checks.catalogue import catalogue
from pytest_otval.checks.registry import run_checks
from pytest_otval.core import Finding
from pytest_otval.task.load import load_task
from selftests.checks.conftest import write_task
from selftests.checks.tables import faults, near_misses


@dataclass
class Score:
    """How a check did."""

    check: str
    faults: int = 0
    found: int = 0
    near_misses: int = 0
    false: int = 0
    elsewhere: int = 0

    @property
    def precision(self) -> float | None:
        """Of what it found in its own tasks, how much is right."""
        told = self.found + self.false
        return self.found / told if told else None

    @property
    def recall(self) -> float | None:
        """Of its faults, how many it found."""
        return self.found / self.faults if self.faults else None

    @property
    def is_mistaken(self) -> bool:
        """Whether it missed a fault or took a near miss for one."""
        return self.found < self.faults or self.false > 0


def findings(edits: Mapping[str, Any]) -> tuple[Finding, ...]:
    """Write a miniature task and check it."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "task"
        write_task(folder, edits)
        return run_checks(load_task(folder, "data"))


def scores() -> dict[str, Score]:
    """Return the score of every check that there is."""
    known = {name: Score(name) for name in catalogue()}
    for fault in faults():
        score = known.setdefault(fault.check, Score(fault.check))
        score.faults += 1
        told = findings(fault.edits)
        score.found += any((one.check, one.path, one.line) == (fault.check, fault.path, fault.line) for one in told)
        for other in {one.check for one in told} - {fault.check}:
            known[other].elsewhere += 1
    for check, edits in near_misses():
        score = known.setdefault(check, Score(check))
        score.near_misses += 1
        told = {one.check for one in findings(edits)}
        score.false += check in told
        for other in told - {check}:
            known[other].elsewhere += 1
    return known


def _table(shown: list[Score]) -> Iterator[str]:
    width = max((len(score.check) for score in shown), default=10)
    titles = ("faults", "found", "near", "false", "precision", "recall", "elsewhere")
    yield f"{'check':{width}}" + "".join(f"{title:>11}" for title in titles)
    for score in shown:
        counts = f"{score.faults:>11}{score.found:>11}{score.near_misses:>11}{score.false:>11}"
        shares = "".join(f"{'-' if share is None else f'{share:.0%}':>11}" for share in (score.precision, score.recall))
        yield f"{score.check:{width}}{counts}{shares}{score.elsewhere:>11}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ids", nargs="*", metavar="ID")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--all", action="store_true")
    chosen = parser.parse_args()
    every = list(scores().values())
    if chosen.json:
        facts = [{**vars(score), "precision": score.precision, "recall": score.recall} for score in every]
        print(json.dumps(facts, indent=2))
        return 0
    shown = [score for score in every if chosen.all or score.check in chosen.ids or score.is_mistaken]
    print("\n".join(_table(shown)))
    total = Counter[str]()
    for score in every:
        total.update({name: value for name, value in vars(score).items() if isinstance(value, int)})
    told = total["found"] + total["false"]
    print(
        f"\nall: {total['found']} of {total['faults']} faults found ({total['found'] / total['faults']:.1%}), "
        f"{total['false']} of {total['near_misses']} near misses taken for one "
        f"(precision {total['found'] / told:.1%}); "
        f"{sum(not score.faults for score in every)} checks have no miniature task here"
    )
    return int(any(score.is_mistaken for score in every))


if __name__ == "__main__":
    sys.exit(main())
