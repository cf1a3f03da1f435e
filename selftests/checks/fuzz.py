"""Whole task trees that no sane author writes, checked in a process that watches itself.

    python -m selftests.checks.fuzz [EXAMPLES] [--seed N] [--seconds X]

No check may raise, take long, open anything outside the task folder, write anything, or start other programs than the
parsers. Ends with status 1 and the tree that shows it, made as small as hypothesis can; prints the slowest time else.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import stat
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from pytest_otval.checks.registry import run_checks
from pytest_otval.task.digest import task_digest
from pytest_otval.task.load import load_task
from selftests.checks.conftest import SOUND
from selftests.checks.tables import faults, near_misses
from selftests.checks.watch import Watch

Content = bytes | tuple[str, str]
"""Of a file; or ``("link", target)``, ``("fifo", "")``, ``("folder", "")``."""


# --- trees -----------------------------------------------------------------------------------------------------------

KNOWN = (
    *SOUND,
    "tests/setup.sh",
    "tests/conftest.py",
    "tests/Dockerfile",
    "tests/config.json",
    "environment/.dockerignore",
    "environment/docker-compose.yaml",
    "environment/app.py",
    "environment/.git/config",
    "solution/fix.patch",
    "setup_files/setup.sh",
    "steps/one/instruction.md",
    "steps/one/tests/test.sh",
    "steps/one/solution/solve.sh",
)
NAMES = st.sampled_from(KNOWN) | st.lists(
    st.sampled_from(["tests", "environment", "solution", "a", "A", "..a", " ", "\n", "\x1b[31m", "\udcff", "é" * 100])
    | st.text(st.characters(blacklist_characters="/\0", codec="utf-8"), min_size=1, max_size=8).filter(
        lambda name: name not in (".", "..")
    ),
    min_size=1,
    max_size=6,
).map("/".join)
DEEP = st.integers(1, 200).map(lambda depth: "environment/" + "d/" * depth + "f.py")
TARGETS = st.sampled_from(
    ["/etc/passwd", "../../..", ".", "..", "tests", "environment/a", "a", "../tests/test.sh", "x" * 300, "/", "a\n"]
)


def _fragments() -> list[bytes]:
    """Return files of the miniature tasks."""
    texts = [
        content if isinstance(content, bytes) else content.encode()
        for edits in [SOUND, *(fault.edits for fault in faults()), *(edits for _, edits in near_misses())]
        for content in edits.values()
        if isinstance(content, str | bytes)
    ]
    return sorted(set(texts), key=len)


FRAGMENTS = _fragments()
NESTED = st.sampled_from(
    [b"(", b"[", b"{", b"$(", b"`", b"if x; then\n", b'"', b"((", b"case x in\n", b"<<A\n", b"f'{", b"-", b"not ", b"&"]
)
CONTENT = st.one_of(
    st.sampled_from(FRAGMENTS),
    st.binary(max_size=200),
    st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")),
    # Two halves of files, cut anywhere.
    st.builds(
        lambda one, other, cut: one[: cut % (len(one) + 1)] + other[cut % (len(other) + 1) :],
        st.sampled_from(FRAGMENTS),
        st.sampled_from(FRAGMENTS),
        st.integers(0, 5000),
    ),
    # Much of the same: huge lines, deep nesting, many lines.
    st.builds(
        lambda start, piece, times: start + piece * times,
        st.sampled_from(
            [b"", b"#!/bin/bash\n", b"FROM debian\nRUN ", b"def test_a():\n    assert ", b"x = ", b'name="']
        ),
        NESTED | st.sampled_from([b"a", b"a ", b"\n", b"\\\n", b"echo 1\n", b"/tests/a ", b"\xff", b"otval: allow\n"]),
        st.sampled_from([10, 500, 20_000, 150_000]),
    ),
)
ENTRIES = st.one_of(
    CONTENT,
    CONTENT,
    CONTENT,
    TARGETS.map(lambda target: ("link", target)),
    st.just(("fifo", "")),
    st.just(("folder", "")),
)
TREES = st.dictionaries(NAMES | NAMES | DEEP, ENTRIES, max_size=12)


def write(folder: Path, tree: Mapping[str, Content]) -> None:
    """Write a tree over the sound task, as far as its paths can be there together."""
    sound: dict[str, Content] = {path: text.encode() for path, text in SOUND.items()}
    for path, content in {**sound, **tree}.items():
        target = folder / path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            if not _is_inside(folder, target):
                continue
            match content:
                case ("link", to):
                    target.unlink(missing_ok=True)
                    target.symlink_to(to)
                case ("fifo", _):
                    target.unlink(missing_ok=True)
                    os.mkfifo(target)
                case ("folder", _):
                    target.mkdir(exist_ok=True)
                case bytes():
                    if not target.is_symlink() and not target.is_fifo():
                        target.write_bytes(content)
                        target.chmod(0o644 if len(content) % 2 else 0o755)
        except (OSError, ValueError):
            continue


def _is_inside(folder: Path, target: Path) -> bool:
    """Whether no link around the target leads elsewhere: a tree may hold links that a later path goes through."""
    return target.parent.resolve().is_relative_to(folder.resolve())


def cpu_seconds() -> float:
    """Return what this process and its children have used."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def check(watch: Watch, tree: Mapping[str, Content], most_seconds: float) -> float:
    """Check a tree and return CPU seconds, its parsers' included. Raises AssertionError for what no check may do."""
    scratch = Path(tempfile.mkdtemp(prefix="fuzz-"))
    try:
        folder = scratch / "task"
        folder.mkdir()
        write(folder, tree)
        before = task_digest(folder)
        began = cpu_seconds()
        with watch.over(folder):
            run_checks(load_task(folder, "data"))
        spent = cpu_seconds() - began
        assert not watch.seen, watch.seen[:5]
        assert spent < most_seconds, f"{spent:.1f} s of CPU"
        assert task_digest(folder) == before, "the task was changed"
        return spent
    finally:
        _remove(scratch)


def _remove(folder: Path) -> None:
    for root, folders, _ in os.walk(folder):
        for name in folders:
            path = Path(root, name)
            if not path.is_symlink():
                path.chmod(stat.S_IRWXU)
    shutil.rmtree(folder, ignore_errors=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("examples", nargs="?", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=2.0, help="the most CPU seconds of a task")
    chosen = parser.parse_args()
    watch = Watch()
    slowest = 0.0
    for edits in ({}, {"steps/one/instruction.md": b"x"}):
        # What is imported and prepared once is no part of any task.
        folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
        write(folder, edits)
        run_checks(load_task(folder, "data"))
        _remove(folder)

    @seed(chosen.seed)
    @settings(max_examples=chosen.examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(TREES)
    def no_tree_is_too_strange(tree: Mapping[str, Content]) -> None:
        nonlocal slowest
        slowest = max(slowest, check(watch, tree, chosen.seconds))

    no_tree_is_too_strange()
    print(f"{chosen.examples} trees; the slowest took {slowest:.2f} s of CPU")
    return 0


if __name__ == "__main__":
    sys.exit(main())
