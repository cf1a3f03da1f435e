"""Converts all records of real sources and counts what became of them.

python selftests/sources/corpus.py ADAPTER=FOLDER ... [--option KEY=VALUE ...] [--static] [--all]

--static asks all static checks about each converted task, in a folder that is removed again, and counts what they find;
--all prints each refusal. Nothing of a source is kept.
"""

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from pytest_otval.checks.registry import run_checks
from pytest_otval.sources.adapters.base import Converted, Refused
from pytest_otval.sources.adapters.registry import make_adapter
from pytest_otval.sources.files import publish_folder
from pytest_otval.task.load import load_task


def found_in(task: Converted, folder: Path) -> Iterator[tuple[str, str]]:
    """Yield severity with check, and an example, of what static checks find."""
    publish_folder(task.files, folder / task.name)
    for finding in run_checks(load_task(folder / task.name, "corpus")):
        yield f"{finding.severity} {finding.check}", f"{task.name}: {finding}"
    shutil.rmtree(folder / task.name)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="+", metavar="ADAPTER=FOLDER")
    parser.add_argument("--option", action="append", default=[], metavar="KEY=VALUE", help="VALUE is JSON, or a text")
    parser.add_argument("--static", action="store_true")
    parser.add_argument("--all", action="store_true")
    chosen = parser.parse_args()
    options = dict(option.split("=", 1) for option in chosen.option)
    for source in chosen.sources:
        name, _, folder = source.partition("=")
        adapter = make_adapter(name, {key: parsed(value) for key, value in options.items()})
        converted, reasons, checks, examples = 0, Counter[str](), Counter[str](), dict[str, str]()
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as scratch:
            for outcome in adapter.convert(Path(folder)):
                if isinstance(outcome, Refused):
                    reasons[outcome.reason] += 1
                    examples.setdefault(outcome.reason, f"{outcome.name}: {outcome.why}")
                    if chosen.all:
                        print(f"{outcome.name}: {outcome.reason}: {outcome.why}")
                    continue
                converted += 1
                for check, example in found_in(outcome, Path(scratch)) if chosen.static else ():
                    checks[check] += 1
                    examples.setdefault(check, example)
        seconds = time.monotonic() - began
        print(f"{name}: {converted} converted, {reasons.total()} refused, {seconds:.1f} s")
        for what, count in (*reasons.most_common(), *checks.most_common()):
            print(f"{count:7} {what:40} {examples[what][:300]}")
    return 0


def parsed(value: str) -> object:
    try:
        return json.loads(value)
    except ValueError:
        return value


if __name__ == "__main__":
    sys.exit(main())
