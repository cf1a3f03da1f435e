"""What a task's texts name: modules of the product that an attack may edit, and paths that it may write to.

A module is what ``instruction.md``, ``solve.sh`` or a patch of the solution calls by a name that ends in ``.py``. Only
those are edited that the container has below the workdir, or by the absolute name, and that are no tests.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from pytest_otval.task.load import Step
from pytest_otval.task.named import instruction_text, paths_named, text_of
from pytest_otval.task.reading import is_folder

MOST_NAMES = 50
_MOST_FILES = 100
_PATCHES = ("*.patch", "*.diff", "solve.sh")
_MODULE = re.compile(r"(?<![\w/.-])/?(?:[\w+-][\w.+-]*/)*[A-Za-z_]\w*\.py\b")
_TEST = re.compile(r"(^|/)(tests?/|solution/|logs/|test_[^/]*$|[^/]*_test\.py$|conftest\.py$|setup\.py$)")


def modules(steps: Iterable[Step]) -> list[str]:
    """Return the names of the product's modules, without the ``a/`` and ``b/`` of patches."""
    named = (name for step in steps for file in _files(step) for name in _MODULE.findall(text_of(file)))
    plain = (re.sub(r"^[ab]/", "", name) for name in named)
    return list(dict.fromkeys(name for name in plain if not _TEST.search(name)))[:MOST_NAMES]


def paths(steps: Iterable[Step]) -> list[str]:
    """Return the absolute paths that instructions name, but those of the system and of graders."""
    named = (path for step in steps for path in paths_named(instruction_text(step)))
    return list(dict.fromkeys(named))[:MOST_NAMES]


def _files(step: Step) -> list[Path]:
    patches = step.solution.rglob if is_folder(step.solution) else lambda pattern: ()
    return [step.instruction, *sorted(path for pattern in _PATCHES for path in patches(pattern))][:_MOST_FILES]
