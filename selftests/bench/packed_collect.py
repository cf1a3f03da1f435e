"""What it costs to know the names of a packed dataset's tasks, beside those of folders.

    python selftests/bench/packed_collect.py [TASKS] [folders|parquet|tar|squashfs ...]

Makes datasets of TASKS equal tasks (50,000 unless given; folders and Parquet unless named), then lists the names of
each in a process of its own, alternately, and takes the median. Prints CPU seconds and peak memory, with all imports
of the form, and without names as the floor; and the CPU milliseconds of unpacking one task of a hundred.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pytest_otval.task.pack import _parquet_writer, _squashfs_writer, _tar_writer
from pytest_otval.task.packed.forms import FILE_OF, Form
from pytest_otval.task.source import source_of

ROUNDS = 5
FILES = (
    "task.toml",
    "instruction.md",
    "environment/Dockerfile",
    "solution/solve.sh",
    "tests/test.sh",
    "tests/test_x.py",
)
WRITERS = {"parquet": _parquet_writer, "tar": _tar_writer, "squashfs": _squashfs_writer}


def make(form: str, folder: Path, count: int) -> Path:
    """Make a dataset; every task is packed from one folder."""
    names = [f"org__repository-{number:06}" for number in range(count)]
    one = folder / "one"
    for file in FILES:
        (one / file).parent.mkdir(parents=True, exist_ok=True)
        (one / file).write_text(f"# {file}\n" * 40)
    dataset = folder / form
    dataset.mkdir()
    (dataset / "dataset.toml").touch()
    if form == "folders":
        for name in names:
            for file in FILES:
                (dataset / "tasks" / name / file).parent.mkdir(parents=True, exist_ok=True)
                (dataset / "tasks" / name / file).touch()
        return dataset
    with WRITERS[form](dataset / FILE_OF[Form(form)]) as add:
        for name in names:
            add(name, one)
    return dataset


def measure(dataset: Path, what: str) -> None:
    """Print CPU seconds, MB and milliseconds a task of this process."""
    source = source_of(dataset)
    names = source.names()[0] if what == "names" else []
    began = spent = time.process_time()
    # The kernel's other figure, ru_maxrss, begins with that of the process that started this one.
    status = Path("/proc/self/status").read_text().splitlines()
    memory = next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024
    with tempfile.TemporaryDirectory() as scratch:
        for name in names[: len(names) // 2 : max(1, len(names) // 200)]:
            source.folder(name, Path(scratch))
    print(spent, memory, (time.process_time() - began) * 10 if names else 0)


def main(count: int, forms: list[str]) -> None:
    """Make, measure, print."""
    with tempfile.TemporaryDirectory(prefix="otval-bench-") as folder:
        datasets = {}
        for form in forms:
            datasets[form] = make(form, Path(folder), count)
        runs = [(form, what) for form in forms for what in ("nothing", "names")]
        figures: dict[tuple[str, str], list[list[float]]] = {run: [] for run in runs}
        for _ in range(ROUNDS):
            for form, what in runs:
                argv = [sys.executable, __file__, "--measure", str(datasets[form]), what]
                output = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
                figures[form, what].append([float(word) for word in output.split()])
        print(f"{count} tasks, medians of {ROUNDS}")
        print(f"{'form':10} {'names: CPU s':>13} {'MB':>6} {'floor: CPU s':>13} {'MB':>6} {'unpack: ms a task':>18}")
        for form in forms:
            middle = [statistics.median(column) for column in zip(*figures[form, "names"], strict=True)]
            floor = [statistics.median(column) for column in zip(*figures[form, "nothing"], strict=True)]
            print(f"{form:10} {middle[0]:13.2f} {middle[1]:6.0f} {floor[0]:13.2f} {floor[1]:6.0f} {middle[2]:18.2f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(Path(sys.argv[2]), sys.argv[3])
    else:
        numbers = [int(word) for word in sys.argv[1:] if word.isdigit()]
        main(*(numbers or [50_000]), [word for word in sys.argv[1:] if not word.isdigit()] or ["folders", "parquet"])
