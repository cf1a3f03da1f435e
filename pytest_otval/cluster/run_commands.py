"""``python -m pytest_otval status|attach|cancel RUN``: to a run that was submitted."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pytest_otval.cluster.job_pytest import CONTRACT
from pytest_otval.cluster.request import read_request
from pytest_otval.cluster.states import SlurmUnreachableError
from pytest_otval.cluster.watch import Watch, cancel, state_line
from pytest_otval.core import OtvalUsageError
from pytest_otval.history import learn
from pytest_otval.workspace import Workspace


def status(run: Path) -> int:
    """Print how a run stands, and submit again what its jobs left; return 0 once all items have an answer, else 1."""
    watch = Watch(run)
    answers = [_answer(line) for line in watch.lines()]
    view = watch.look()
    print(f"{run}: {state_line(view)}")
    if view.verdicts:
        print(", ".join(f"{count} {verdict}" for verdict, count in sorted(view.verdicts.items())))
    if view.done < view.items:
        return 1
    # What others learn in front of a run is learnt here of one that nobody was in front of.
    with suppress(OSError):
        learn(Workspace.from_environment().root / "history", answers)
    return 0


def _answer(line: Mapping[str, Any]) -> dict[str, Any]:
    """Return what ``history`` wants to know of a result line."""
    key = (line.get("image") or {}).get("key", "")
    return {name: line[name] for name in ("id", "stage", "verdict", "seconds")} | {"image_key": key}


def cancel_run(run: Path) -> int:
    """End the jobs of a run. Raises OtvalUsageError where that cannot be done now."""
    read_request(run)
    try:
        cancel(run)
    except SlurmUnreachableError as error:
        raise OtvalUsageError(f"Slurm does not answer: {error}; what was asked stands, call it again later") from None
    print(f"{run}: its jobs are cancelled; what they answered stays")
    return 0


def attach_words(run: Path) -> list[str]:
    """Return the command line of pytest in front of a run. Raises OtvalUsageError where it is no submitted one."""
    request = read_request(run)
    plugins = [word for name in request.plugins for word in ("-p", name)]
    kind = "contract" if request.by_contract else "run"
    return [*plugins, f"--otval-contract={run / CONTRACT}", f"--otval-out={run}", f"--otval-attach={kind}"]
