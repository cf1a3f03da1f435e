"""What converting many SWE-style rows costs: rows a second, and memory, which must not grow with their number.

python selftests/bench/adapters.py [--rows N] [--tests N] [--form parquet|jsonl]

Rows are generated, with patches and lists of tests as long as real ones; some are refused on purpose. Converted files
are only counted.
"""

import argparse
import json
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow
from pyarrow import parquet

from pytest_otval.sources.adapters.base import Converted
from pytest_otval.sources.adapters.registry import make_adapter

BATCH = 500


def rows(number: int, tests: int) -> Iterator[dict[str, Any]]:
    body = "".join(f"+    value_{line} = compute({line}, 'some text of usual length')\n" for line in range(60))
    for index in range(number):
        path, test = f"package/module_{index % 97}.py", f"tests/test_{index % 97}.py"
        ids = [f"{test}::TestCase::test_number[{index}-{one}]" for one in range(tests)]
        yield {
            "instance_id": f"owner__project-{index}",
            "repo": "owner/project",
            "base_commit": f"{index:040x}",
            "patch": f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1,1 +1,61 @@\n import os\n{body}",
            "test_patch": f"--- /dev/null\n+++ b/{test}\n@@ -0,0 +1,60 @@\n{body}",
            "problem_statement": f"Problem {index}. " + "It should do something else than it does. " * 60,
            "FAIL_TO_PASS": ids[:3] if index % 50 else [f"{test}::test_cut[{index}"],
            "PASS_TO_PASS": ids[3:],
            "docker_image": f"example/project:{index}",
        }


def write(form: str, number: int, tests: int, folder: Path) -> Path:
    target = folder / f"rows.{form}"
    if form == "jsonl":
        with target.open("w") as stream:
            stream.writelines(f"{json.dumps(row)}\n" for row in rows(number, tests))
        return target
    schema = pyarrow.Table.from_pylist(list(rows(1, tests))).schema
    with parquet.ParquetWriter(target, schema) as writer:
        part: list[dict[str, Any]] = []
        for row in rows(number, tests):
            part.append(row)
            if len(part) == BATCH:
                writer.write_table(pyarrow.Table.from_pylist(part, schema))
                part.clear()
        writer.write_table(pyarrow.Table.from_pylist(part, schema))
    return target


def resident() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=30_000)
    parser.add_argument("--tests", type=int, default=100)
    parser.add_argument("--form", choices=["parquet", "jsonl"], default="parquet")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        source = write(chosen.form, chosen.rows, chosen.tests, Path(scratch))
        print(
            f"{chosen.rows} rows, {source.stat().st_size / 2**20:.0f} MB of {chosen.form}, {resident():.0f} MB before"
        )
        began, wall = time.process_time(), time.monotonic()
        found: Counter[str] = Counter()
        for number, outcome in enumerate(make_adapter("swe").convert(source), 1):
            found["converted" if isinstance(outcome, Converted) else outcome.reason] += 1
            if number % (chosen.rows // 3 or 1) == 0:
                print(f"{number:8} rows: {resident():.0f} MB resident at most")
        spent = time.process_time() - began
        print(
            f"{chosen.rows / spent:.0f} rows per CPU second, {chosen.rows / (time.monotonic() - wall):.0f} a second; "
            + ", ".join(f"{count} {what}" for what, count in found.most_common())
        )


if __name__ == "__main__":
    main()
