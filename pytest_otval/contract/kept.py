"""Contracts that lie in the workspace: what they fix is kept when garbage is collected."""

from __future__ import annotations

from pathlib import Path

from pytest_otval.contract.file import read_contract
from pytest_otval.contract.model import Contract


def kept_contracts(folder: Path) -> list[Contract]:
    """Return the contracts of a folder, ``$OT_WORKSPACE/contracts``. Raises OtvalUsageError for one that is none."""
    return [read_contract(path) for path in sorted(folder.glob("*.json"))]
