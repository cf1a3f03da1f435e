"""junit: an answer as several readable properties, where pytest would write the one dict that reports carry."""

from __future__ import annotations

from copy import copy
from typing import Any

import pytest

from pytest_otval.glue._compat import junit_writer
from pytest_otval.glue.item import PROPERTY
from pytest_otval.glue.outcome import answer_of
from pytest_otval.report.properties import properties
from pytest_otval.report.results import row_of


def write_readable_properties(config: pytest.Config) -> None:
    """Let the junit file of this run, if there is one, have readable properties.

    pytest writes a report's ``user_properties`` one by one when an item ends, and has no hook there. Reports themselves
    stay as they are, since others read them.
    """
    xml = junit_writer(config)
    if xml is None:
        return
    finalize = xml.finalize
    xml.finalize = lambda report: finalize(_readable(report))


def _readable(report: Any) -> Any:
    answer = answer_of(report)
    if answer is None:
        return report
    changed = copy(report)
    others = [entry for entry in report.user_properties if entry[0] != PROPERTY]
    changed.user_properties = [*properties(row_of(answer)), *others]
    return changed
