"""Warnings of ours."""

from __future__ import annotations

from warnings import WarningMessage

import pytest


def warn(config: pytest.Config, message: str, nodeid: str = "") -> None:
    """Warn by pytest's own channel: by Python's, ``-W error`` would make it an error that stops the run."""
    warning = WarningMessage(pytest.PytestCollectionWarning(message), pytest.PytestCollectionWarning, "", 0)
    details = {"warning_message": warning, "when": "collect", "nodeid": nodeid, "location": None}
    config.hook.pytest_warning_recorded.call_historic(kwargs=details)
