"""What earlier runs learnt of each task: how long its stages took, and which image it needs.

A hint for the order of work and nothing more: no verdict depends on it, and what cannot be read is as good as absent.
``$OT_WORKSPACE/history/<dataset>.json`` holds ``{"v": 1, "tasks": {TASK: {"seconds": {STAGE: s}, "image": KEY}}}``.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SCHEMA = 1
_LOCK_SECONDS = 10.0
"""How long a run that has ended waits for another that is writing."""

_ITEM = re.compile(r"datasets/([^/]+)/tasks/([^/]+)/task\.toml::.+")


@dataclass(slots=True)
class Record:
    """What is known of one task."""

    seconds: dict[str, float] = field(default_factory=dict)
    """By stage, without the time spent waiting for the node."""
    image: str = ""
    """Key of the image of its agent."""


def read_history(folder: Path, dataset: str) -> dict[str, Record]:
    """Return what is known of a dataset's tasks, by name."""
    try:
        values = json.loads((folder / f"{dataset}.json").read_bytes())
        tasks = values["tasks"] if values["v"] == SCHEMA else {}
        return {task: record for task, raw in tasks.items() if (record := _record(raw)) is not None}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _record(raw: Any) -> Record | None:
    if not isinstance(raw, dict):
        return None
    seconds, image = raw.get("seconds"), raw.get("image")
    if not isinstance(seconds, dict) or not isinstance(image, str):
        return None
    return Record({stage: float(value) for stage, value in seconds.items() if _is_time(value)}, image)


def _is_time(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0


def learn(folder: Path, answers: Iterable[Mapping[str, Any]]) -> None:
    """Add what the answers of a run tell; what other runs wrote meanwhile stays.

    An answer is what reports carry: ``id``, ``stage``, ``verdict``, ``seconds`` and ``image_key``. Errors tell nothing
    of a task. Raises OSError where the folder cannot be written.
    """
    news: dict[str, dict[str, Record]] = defaultdict(lambda: defaultdict(Record))
    for answer in answers:
        found, total = _ITEM.fullmatch(answer["id"]), answer["seconds"].get("total")
        if found is None or answer["verdict"] == "error":
            continue
        record = news[found[1]][found[2]]
        record.image = answer["image_key"] or record.image
        if _is_time(total):
            record.seconds[answer["stage"]] = round(total, 3)
    for dataset, records in news.items():
        _merge(folder, dataset, records)


def _merge(folder: Path, dataset: str, news: Mapping[str, Record]) -> None:
    from filelock import FileLock, Timeout

    folder.mkdir(parents=True, exist_ok=True)
    path, work = folder / f"{dataset}.json", folder / f".{dataset}.json.{os.getpid()}"
    try:
        with FileLock(folder / f"{dataset}.lock", timeout=_LOCK_SECONDS):
            known = read_history(folder, dataset)
            for task, record in news.items():
                before = known.get(task, Record())
                known[task] = Record({**before.seconds, **record.seconds}, record.image or before.image)
            tasks = {task: {"seconds": one.seconds, "image": one.image} for task, one in sorted(known.items())}
            try:
                work.write_text(json.dumps({"v": SCHEMA, "tasks": tasks}, separators=(",", ":")) + "\n")
                work.replace(path)
            finally:
                work.unlink(missing_ok=True)
    except Timeout:
        return
