"""The options of reviews by a model."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import pytest

from pytest_otval.core import OtvalUsageError
from pytest_otval.glue.numbers import positive_integer
from pytest_otval.stages.spec import JUDGE_MARKS, JUDGES, Stage

_ASKED = re.compile(rf"\b({'|'.join(sorted(JUDGE_MARKS))})\b")


def add_judge_options(group: Any) -> None:
    """Add them; each is plain, so that workers get it as it is."""
    group.addoption(
        "--otval-judge",
        default="",
        metavar="MODEL",
        help="model that reviews tasks (-m judge_task), attempts at them (-m judge_trace) or both (-m judge)",
    )
    group.addoption(
        "--otval-votes",
        type=positive_integer,
        default=1,
        metavar="N",
        help="ask the judge twice, and up to N times where its answers differ (default 1: once)",
    )
    group.addoption(
        "--otval-rubric",
        default="",
        metavar="FILE,...",
        help="rubrics in place of ours, of each kind at most one; Harbor's form is read, too",
    )
    group.addoption(
        "--otval-trials",
        default="",
        metavar="RUN",
        help="the run whose attempts are reviewed, by its folder or as `latest` (default: this run)",
    )


def require_judge(config: pytest.Config, stages: Iterable[Stage]) -> None:
    """Raise OtvalUsageError where reviews are asked for by ``-m`` and nobody is named who could make them."""
    names = {stage.name for stage in stages}
    found = _ASKED.search(str(config.option.markexpr))
    if found and all(stage.name not in names for stage in JUDGES):
        raise OtvalUsageError(f"-m {config.option.markexpr}: name who reviews: --otval-judge MODEL")
