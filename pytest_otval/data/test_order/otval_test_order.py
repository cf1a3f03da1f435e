"""A pytest plugin for the verifier's container: tests run in the order that ``$OTVAL_TEST_ORDER`` decides.

It runs in whatever Python and pytest (from 6) the task has. Modules stay together, and so do classes: fixtures of
theirs are made as often as before. An order that a task declares, by a plugin of its own, is made after this one.
Places go by node ids, so that any pytest and any selection of tests has them.
"""

import os
import random
from contextlib import suppress
from pathlib import Path

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: "list[pytest.Item]") -> None:
    """Give each node a random place among its sisters, and leave word of how many tests there are."""
    seed = os.environ.get("OTVAL_TEST_ORDER", "")
    if not seed:
        return
    places = {}  # type: dict[str, float]

    def place(id: str) -> float:
        if id not in places:
            places[id] = random.Random(seed + " " + id).random()
        return places[id]

    items.sort(key=lambda item: [place(node.nodeid) for node in item.listchain()])
    with suppress(OSError):
        (Path(__file__).resolve().parent / "told" / str(len(items))).touch()
