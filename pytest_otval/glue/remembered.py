"""Items whose answer is remembered and a plain pass: told without what pytest does around code that runs.

Capturing output, catching log records and keeping fixtures cost several times what the look-up costs, and nothing runs
here. All reports are made and logged by pytest's hooks as ever. Where another plugin has a part in setting items up,
calling them or tearing them down, and where somebody steers the item by a mark, it goes the usual way.
"""

from __future__ import annotations

from functools import cached_property

import pytest

from pytest_otval.glue._compat import leave_nodes
from pytest_otval.glue.item import StageItem

PHASES = ("pytest_runtest_setup", "pytest_runtest_call", "pytest_runtest_teardown")
WITHOUT_EFFECT = ("_pytest", "pytest_otval", "_hypothesis_pytestplugin")
"""Packages whose parts in them mean nothing to an item of ours that runs no code."""
STEERING = frozenset(("skip", "skipif", "xfail"))
"""Marks that pytest looks at before an item."""


class TellRemembered:
    """In each process."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @cached_property
    def _is_free(self) -> bool:
        """Whether no other plugin would miss anything."""
        hooks = (getattr(self._config.hook, name) for name in PHASES)
        parts = (part.function.__module__ for hook in hooks for part in hook.get_hookimpls())
        shown = self._config.getoption("setupshow", False)
        return not shown and all(module.partition(".")[0] in WITHOUT_EFFECT for module in parts)

    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """Tell an answer that is remembered; None leaves the item to others."""
        if not isinstance(item, StageItem) or not self._is_free:
            return None
        if any(mark.name in STEERING for mark in item.iter_markers()):
            return None
        call = pytest.CallInfo.from_call(item.recall, "setup", reraise=BaseException)
        if not call.result:
            return None
        hook, session = item.ihook, item.session
        hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        hook.pytest_runtest_logreport(report=hook.pytest_runtest_makereport(item=item, call=call))
        for phase in ("call", "teardown"):
            call = pytest.CallInfo.from_call(lambda: True, phase)
            hook.pytest_runtest_logreport(report=hook.pytest_runtest_makereport(item=item, call=call))
        leave_nodes(session, None if session.shouldfail or session.shouldstop else nextitem)
        hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True
