"""In a shard: which items have begun, written down at once: when a job dies, those without an answer were running."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from pytest_otval.ledger import SCHEMA

WRITER = "started"


class Started:
    """On the controller: adds a line to a ledger file of its own for each item that begins."""

    def __init__(self, run: Path) -> None:
        self._path = run / "ledger" / f"{WRITER}.jsonl"

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Note that an item begins."""
        line = json.dumps({"v": SCHEMA, "kind": "started", "id": nodeid}) + "\n"
        # On a full disk the item itself tells.
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("ab", buffering=0) as file:
                file.write(line.encode())
