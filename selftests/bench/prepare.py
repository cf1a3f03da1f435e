"""What ``prepare`` of many generated SWE-style rows costs, with five patches: tasks a second, memory, files.

python selftests/bench/prepare.py [--rows N] [--tests N]

One of the patches is from the library, whose condition is a static check. Memory is the proportional set size of all
processes together, looked at five times a second. CPU seconds are told, too: on a machine that does other work as well
they say more than seconds.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pyarrow
from pyarrow import parquet

from selftests.bench.adapters import write

TOML = """\
[otval]
adapter = "swe"
[otval.source]
kind = "local"
path = "../../rows.parquet"
"""
PATCH = """\
import sys
from pytest_otval.sources.dataset import PatchedDataset
from pytest_otval.sources.library import resources
from pytest_otval.sources.patches import Patch

def at_the_end(id, path, text):
    def change(task):
        task.write(path, task.text(path) + text)

    return Patch(id, id, change, lambda task: text not in task.text(path))

PATCHES = [
    at_the_end("title", "instruction.md", "\\nAnswer in English.\\n"),
    at_the_end("label", "environment/Dockerfile", "LABEL set=generated\\n"),
    at_the_end("note", "solution/solve.sh", "# The reference.\\n"),
    at_the_end("words", "tests/test.sh", "# The tests.\\n"),
    resources(2, 4096, 10240),
]

if __name__ == "__main__":
    sys.exit(PatchedDataset(__file__, PATCHES).main())
"""


def run(dataset: Path, workspace: Path, command: str) -> str:
    """Run a command of patch.py and say what it cost; return what it said."""
    began = time.monotonic()
    arguments = [sys.executable, str(dataset / "patch.py"), command]
    process = subprocess.Popen(arguments, env={**os.environ, "OT_WORKSPACE": str(workspace)}, stdout=subprocess.PIPE)
    most, cpu = 0, {}
    top = psutil.Process(process.pid)
    while process.poll() is None:
        total = 0
        with suppress(psutil.Error):
            for one in (top, *top.children(recursive=True)):
                with suppress(psutil.Error):
                    total += one.memory_full_info().pss
                    times = one.cpu_times()
                    cpu[one.pid] = times.user + times.system
        most = max(most, total)
        time.sleep(0.2)
    seconds = time.monotonic() - began
    assert process.stdout is not None
    said = process.stdout.read().decode().splitlines()[-1]
    print(f"{command}: {seconds:.1f} s, {sum(cpu.values()):.1f} CPU s, {most >> 20} MiB at most: {said}", flush=True)
    return said


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--tests", type=int, default=100)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        source = write("parquet", chosen.rows, chosen.tests, root)
        dataset, workspace = root / "datasets" / "generated", root / "workspace"
        dataset.mkdir(parents=True)
        workspace.mkdir()
        (dataset / "dataset.toml").write_text(TOML)
        (dataset / "patch.py").write_text(PATCH)
        run(dataset, workspace, "prepare")
        files = [path for path in (workspace / "datasets").rglob("*") if path.is_file()]
        print(f"{len(files)} files, {sum(path.stat().st_size for path in files) >> 20} MiB")
        run(dataset, workspace, "prepare")
        run(dataset, workspace, "status")
        rows = parquet.read_table(source)
        parquet.write_table(pyarrow.concat_tables([rows[: chosen.rows // 2 + 1], rows[chosen.rows // 2 + 2 :]]), source)
        run(dataset, workspace, "prepare")


if __name__ == "__main__":
    main()
