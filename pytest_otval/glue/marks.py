"""Which stages can have items at all, decided by ``-m`` before any node exists.

pytest's own deselection runs after collection as ever, so what is let through here too much costs time only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import product

from pytest_otval.glue._compat import MarkExpression
from pytest_otval.stages.spec import Stage

MOST_OTHERS = 4
"""Marks of others in an expression for which all cases are tried."""

_WORD = re.compile(r"[^\s()=,]+")
"""At least what pytest takes for the name of a mark."""


def chosen_stages(stages: Iterable[Stage], markexpr: str) -> tuple[str, ...]:
    """Return the names of the stages that items are made for: without a mark expression those that run by default.

    An item surely has the marks of its stage and none of another stage. It may have any other mark, by a conftest, so
    a stage is left out only where no such marks could make the expression true.
    """
    stages = tuple(stages)
    if not markexpr:
        return tuple(stage.name for stage in stages if stage.by_default)
    marks = frozenset(mark for stage in stages for mark in stage.marks)
    # Of marks with arguments, mark(name=value), nothing is known before they are there.
    others = sorted(set(_WORD.findall(markexpr)) - {"and", "or", "not", *marks})
    everything = tuple(stage.name for stage in stages)
    if len(others) > MOST_OTHERS or "=" in markexpr:
        return everything
    try:
        expression = MarkExpression(markexpr)
    except (ImportError, AttributeError, SyntaxError, ValueError, RecursionError, MemoryError):
        # pytest itself says what is wrong with an expression.
        return everything
    cases = [
        {name for name, there in zip(others, case, strict=True) if there}
        for case in product((False, True), repeat=len(others))
    ]
    # Attempts of one model have one set of marks, and may be many.
    own = {stage.marks for stage in stages}
    chosen = {some for some in own if any(expression.matches({*some, *case}.__contains__) for case in cases)}
    return tuple(stage.name for stage in stages if stage.marks in chosen)
