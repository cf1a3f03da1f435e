"""Which items of a contract a shard has: as the plan beside it says, else every N-th task."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from pytest_otval.contract.model import Contract
from pytest_otval.core import OtvalUsageError
from pytest_otval.task.reading import NotReadableError, read_regular

SHARDS = "shards.json"
"""``{"v": 1, "shards": [[number of an item, ...], ...]}``."""
_MAX_BYTES = 1 << 28


def items_of_shard(contract: Contract, folder: Path, shard: str) -> list[int]:
    """Return the numbers of the items of shard ``I/N``, counted from 1; ``folder`` is the contract's.

    Raises OtvalUsageError for what is no shard, and for a plan of another number of shards.
    """
    found = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", shard)
    number, count = (int(found[1]), int(found[2])) if found else (0, 0)
    if not 1 <= number <= count:
        raise OtvalUsageError(f"--otval-shard {shard}: write I/N, as 2/8 for the second of eight")
    plan = _planned(folder / SHARDS)
    if plan is None:
        return _every(contract, number, count)
    if len(plan) != count:
        raise OtvalUsageError(f"--otval-shard {shard}: {folder / SHARDS} has {len(plan)} shards")
    numbers = list(plan[number - 1])
    if any(not 0 <= one < contract.count for one in numbers):
        raise OtvalUsageError(f"{folder / SHARDS} is not of this contract: remove it, or submit anew")
    return numbers


def _planned(file: Path) -> Sequence[Sequence[int]] | None:
    try:
        values = json.loads(read_regular(file, _MAX_BYTES))
        shards: list[list[int]] = values["shards"]
        if values["v"] == 1 and all(isinstance(number, int) for shard in shards for number in shard):
            return shards
        raise ValueError
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError, NotReadableError):
        raise OtvalUsageError(f"{file} is no plan of shards: remove it, or submit anew") from None


def _every(contract: Contract, number: int, count: int) -> list[int]:
    """Return the items of every ``count``-th task: stages of one task stay together."""
    tasks: dict[tuple[str, str], int] = {}
    chosen = []
    for place, item in enumerate(contract.items()):
        if tasks.setdefault((item.dataset, item.task), len(tasks)) % count == number - 1:
            chosen.append(place)
    return chosen
