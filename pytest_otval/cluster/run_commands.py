"""``python -m pytest_otval status|attach|cancel RUN``: to a run that was submitted."""

from __future__ import annotations

from pathlib import Path

from pytest_otval.cluster.job import CONTRACT
from pytest_otval.cluster.request import read_request
from pytest_otval.cluster.states import SlurmUnreachableError
from pytest_otval.cluster.watch import Watch, cancel, state_line
from pytest_otval.core import OtvalUsageError


def status(run: Path) -> int:
    """Print how a run stands, and submit again what its jobs left; return 0 once all items have an answer, else 1."""
    watch = Watch(run)
    for _ in watch.lines():
        pass
    view = watch.look()
    print(f"{run}: {state_line(view)}")
    if view.verdicts:
        print(", ".join(f"{count} {verdict}" for verdict, count in sorted(view.verdicts.items())))
    return 0 if view.done >= view.items else 1


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
    plugins = [word for name in read_request(run).plugins for word in ("-p", name)]
    return [*plugins, f"--otval-contract={run / CONTRACT}", f"--otval-out={run}", "--otval-attach"]
