"""What a task's texts name: modules of the product that an attack may edit, and paths that it may write to.

A module is what ``instruction.md``, ``solve.sh`` or a patch of the solution calls by a name that ends in ``.py``. Only
those are edited that the container has below the workdir, or by the absolute name, and that are no tests.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from pytest_otval.task.load import Step
from pytest_otval.task.named import paths_named
from pytest_otval.task.reading import NotReadableError, is_folder, read_regular

MOST_NAMES = 50
_MOST_BYTES = 1024 * 1024
_MOST_FILES = 100
_PATCHES = ("*.patch", "*.diff", "solve.sh")
_MODULE = re.compile(r"(?<![\w/.-])/?(?:[\w+-][\w.+-]*/)*[A-Za-z_]\w*\.py\b")
_TEST = re.compile(r"(^|/)(tests?/|solution/|logs/|test_[^/]*$|[^/]*_test\.py$|conftest\.py$|setup\.py$)")


def modules(steps: Iterable[Step]) -> list[str]:
    """Return the names of the product's modules, without the ``a/`` and ``b/`` of patches."""
    named = (name for text in _texts(steps, with_solution=True) for name in _MODULE.findall(text))
    plain = (re.sub(r"^[ab]/", "", name) for name in named)
    return list(dict.fromkeys(name for name in plain if not _TEST.search(name)))[:MOST_NAMES]


def paths(steps: Iterable[Step]) -> list[str]:
    """Return the absolute paths that instructions name, but those of the system and of graders."""
    named = (path for text in _texts(steps, with_solution=False) for path in paths_named(text))
    return list(dict.fromkeys(named))[:MOST_NAMES]


def _texts(steps: Iterable[Step], with_solution: bool) -> Iterator[str]:
    for step in steps:
        files = [step.instruction]
        if with_solution and is_folder(step.solution):
            files += sorted(path for pattern in _PATCHES for path in step.solution.rglob(pattern))
        for file in files[:_MOST_FILES]:
            try:
                yield read_regular(file, _MOST_BYTES).decode("utf-8", "replace")
            except (NotReadableError, FileNotFoundError, NotADirectoryError):
                continue
