"""Applies the library's patches to copies of real tasks and counts what became of them.

python selftests/sources/patch_corpus.py FOLDER [--limit N] [--versions NAME=VERSION ...] [--base NAME=NAME ...]

Each patch is tried alone, then all are applied one after the other; static findings are counted before and after, and
every shell script and Dockerfile that a shell or BuildKit's parser could read has to be one that it still can. Nothing
of the tasks is kept. Exit status 1 where a patch crashes or makes a file unreadable.
"""

import argparse
import multiprocessing
import re
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter, defaultdict
from functools import partial
from pathlib import Path

from pytest_otval.checks.bash_syntax import shell_error
from pytest_otval.checks.registry import run_checks
from pytest_otval.sources import library
from pytest_otval.sources.editor import TaskEditor
from pytest_otval.sources.patches import Patch, apply, in_order
from pytest_otval.task.dockerfile import DockerfileError, parse_dockerfile

BIG = 2 << 20
"""Bytes of a data file that is not copied: no patch looks at it."""


def patches(versions: dict[str, str], bases: dict[str, str]) -> list[Patch]:
    return [
        library.safe_repairs(),
        library.executable_scripts(),
        library.fresh_rewards(),
        library.kept_status(),
        library.installs_in_runtime(),
        library.hardened_tests(),
        library.isolated_graders(),
        library.judges_restored(),
        library.reward_guard(),
        library.tests_out_of_image(),
        library.no_git_history(),
        library.package_lists(),
        library.apt_says_yes(),
        library.quoted_versions(),
        library.pinned_packages(versions),
        library.pinned_bases(bases),
        library.build_errors_shown(),
        library.run_bits(),
        library.time_limits(900, 300),
        library.least_limits(120, 60),
        library.resources(1, 2048, 10240),
        library.task_names(),
    ]


def look(task: TaskEditor) -> tuple[Counter[str], dict[str, bool]]:
    """Return the findings of a task by check, and whether each script and Dockerfile can be read."""
    counts = Counter({one.check for one in run_checks(task.task)})
    readable = {}
    for path in task.content():
        if path.endswith(".sh"):
            readable[path] = shell_error((task.data(path) or b"").decode("utf-8", "replace")) is None
        elif path.endswith("Dockerfile"):
            try:
                parse_dockerfile(task.folder / path)
                readable[path] = True
            except DockerfileError:
                readable[path] = False
    return counts, readable


def try_all(
    library_patches: list[Patch], folder: Path
) -> tuple[list[tuple[str, str, str]], Counter, Counter, list[str]]:
    """Return what each patch came to, findings before and after, and what went wrong."""
    told, wrong = [], []
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / folder.name
        for patch in library_patches:
            _copy(folder, copy)
            try:
                outcome = apply(TaskEditor(copy, "corpus"), [patch])
            except Exception:
                wrong.append(f"{folder.name}: {patch.id} crashed: {traceback.format_exc()}")
                continue
            what = "repaired" if outcome.applied else "refused" if outcome.trouble else ""
            told += [(patch.id, what, " ".join(outcome.trouble))] if what else []
        _copy(folder, copy)
        task = TaskEditor(copy, "corpus")
        before, was = look(task)
        apply(task, in_order(library_patches))
        after, now = look(task)
        wrong += [
            f"{folder.name}: {path} can no longer be read" for path in was if was[path] and not now.get(path, True)
        ]
        again = apply(task, in_order(library_patches)).applied
        wrong += [f"{folder.name}: {', '.join(again)} applied twice"] if again else []
    return told, before, after, wrong


def _copy(folder: Path, copy: Path) -> None:
    shutil.rmtree(copy, ignore_errors=True)

    def big(where: str, names: list[str]) -> list[str]:
        paths = (Path(where) / name for name in names)
        return [one.name for one in paths if not one.is_symlink() and one.is_file() and one.stat().st_size > BIG]

    shutil.copytree(folder, copy, symlinks=True, ignore=big)


def general(why: str) -> str:
    """Return a reason without what differs from task to task."""
    return re.sub(r"[\w./-]*/[\w./-]+|line \d+|:\d+|`[^`]*`", "..", why)[:110]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--versions", nargs="*", default=[], metavar="NAME=VERSION")
    parser.add_argument("--base", nargs="*", default=[], metavar="NAME=NAME")
    chosen = parser.parse_args()
    pairs = [dict(one.split("=", 1) for one in given) for given in (chosen.versions, chosen.base)]
    folders = sorted(path.parent for path in chosen.folder.rglob("task.toml"))
    if chosen.limit:
        folders = folders[:: max(1, len(folders) // chosen.limit)][: chosen.limit]
    began = time.monotonic()
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    reasons, before, after, wrong = Counter[tuple[str, str]](), Counter[str](), Counter[str](), list[str]()
    # Not forked: see task/buildkit.py.
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        for told, old, new, bad in pool.imap(partial(_of, pairs), folders, chunksize=4):
            for patch, what, why in told:
                counts[patch][what] += 1
                reasons[patch, general(why)] += bool(why)
            before += old
            after += new
            wrong += bad
    print(f"{len(folders)} tasks, {time.monotonic() - began:.0f} s, {len(wrong)} wrong")
    for patch, by in counts.items():
        print(f"  {patch}: {by['repaired']} repaired, {by['refused']} refused")
    for (_, why), count in reasons.most_common():
        if count:
            print(f"    {count} {why}")
    for check in sorted(before.keys() | after.keys()):
        if before[check] != after[check]:
            print(f"  {check}: {before[check]} -> {after[check]}")
    print(*wrong, sep="\n")
    return 1 if wrong else 0


def _of(pairs: list[dict[str, str]], folder: Path):
    return try_all(patches(*pairs), folder)


if __name__ == "__main__":
    sys.exit(main())
