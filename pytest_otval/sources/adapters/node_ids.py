"""Lists of pytest's ids that a source gives, and the repair of ids that were cut at a blank.

Some sources took ids from pytest's output, word by word: of ``test_x.py::test_a[1 2]`` they have
``test_x.py::test_a[1``, which is the id of no test.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from pytest_otval.core import Conclusion
from pytest_otval.sources.adapters.base import RefusalError
from pytest_otval.sources.adapters.diffs import ChangedFile
from pytest_otval.sources.adapters.parametrized import parametrized_ids
from pytest_otval.task.packed.unpack import Rules

_ID = re.compile(r"(?P<file>[^\[\]:]+\.py)(?:::[^\[\]:]+)+(?:\[.*)?")


def check_ids(ids: Iterable[str], what: str) -> None:
    """Refuse what is no id of a pytest test in a file. Raises RefusalError."""
    plain_files: set[str] = set()
    for one in ids:
        found = _ID.fullmatch(one)
        if not found:
            why = f"{what} holds {one[:80]!r}, which is no id of pytest: tests of another runner cannot be graded"
            raise RefusalError("unsupported-tests", why)
        if found["file"] in plain_files:
            continue
        raw = found["file"].encode()
        try:
            plain = Rules().checked(raw, raw)
        except Conclusion as conclusion:
            raise RefusalError("unsafe-path", f"{what}: {conclusion.headline}") from None
        if plain != raw or found["file"].startswith("-"):
            raise RefusalError("unsafe-path", f"{what} holds {one[:80]!r}, whose file has no plain path")
        plain_files.add(found["file"])


def files_of(ids: Iterable[str]) -> list[str]:
    """Return the test files of ids, sorted."""
    return sorted({one.partition("::")[0] for one in ids})


def is_cut(one: str) -> bool:
    """Whether an id with parameters lacks its end: pytest's always end with a bracket."""
    return "[" in one and not one.endswith("]")


def repair_ids(ids: Sequence[str], patch: Sequence[ChangedFile], what: str) -> tuple[list[str], int]:
    """Return the ids, each once, with those completed that were cut at a blank; and how many that were.

    What a test's parameters are is taken from the patch that adds or changes the test, and from nowhere else: there
    must be just as many ids that begin so as the list has. Raises RefusalError ``cut-ids`` where that is not proved.
    """
    cut = Counter(one for one in ids if is_cut(one))
    completed = {one: _completed(one, count, patch, what) for one, count in cut.items()}
    whole = [full for one in ids for full in completed.get(one, (one,))]
    return list(dict.fromkeys(whole)), sum(len(found) for found in completed.values())


def _completed(one: str, count: int, patch: Sequence[ChangedFile], what: str) -> tuple[str, ...]:
    test, _, begin = one.partition("[")
    known = parametrized_ids(test, patch)
    found = tuple(f"{test}[{full}]" for full in known if full.partition(" ")[0] == begin and " " in full)
    if len(found) == count:
        return found
    if not known:
        why = "the test patch does not show its parameters"
    else:
        why = f"{len(found)} tests of the test patch begin so"
    raise RefusalError("cut-ids", f"{what} holds {one[:120]!r}, which was cut at a blank, {count} times: {why}")
