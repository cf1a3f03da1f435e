"""``--otval-resume RUN``: a run goes on. What its ledger answers is told again, all else is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_otval.core import OtvalUsageError
from pytest_otval.glue import options
from pytest_otval.ledger import find_run, read_run

OF_RESUMING = ("--otval-resume", "--otval-out")
"""Options of a recorded command line that say where that run wrote."""


def run_to_resume(config: pytest.Config) -> Path | None:
    """Return the run folder that is to go on. Raises OtvalUsageError for what is none."""
    name = str(config.getoption("--otval-resume"))
    if not name:
        return None
    if config.getoption("--otval-out"):
        raise OtvalUsageError("--otval-resume says where the run writes: leave --otval-out out")
    run = find_run(name)
    _recorded(run)
    return run


def _recorded(run: Path) -> dict[str, object]:
    try:
        return read_run(run)
    except (OSError, ValueError):
        raise OtvalUsageError(f"--otval-resume {run}: it is no run folder, or no item of it was ever begun") from None


_COMMAND = pytest.StashKey[list[str]]()


def command_of(config: pytest.Config) -> list[str]:
    """Return the command line of this run, that of a resumed one included."""
    return config.stash.get(_COMMAND, list(map(str, config.invocation_params.args)))


def repeat_command(config: pytest.Config, args: list[str]) -> None:
    """Put the recorded command line of a run before ``args``, where they say nothing but to resume it."""
    known = config.known_args_namespace
    if not getattr(known, "otval_resume", "") or known.file_or_dir or known.otval_contract:
        return
    try:
        run = find_run(known.otval_resume)
        facts = _recorded(run)
    except OtvalUsageError as error:
        raise options.as_usage_error(error) from None
    before, cwd = facts.get("args"), facts.get("cwd")
    if not isinstance(before, list) or not isinstance(cwd, str):
        raise pytest.UsageError(f"--otval-resume {run}: its command line is not known: give it again")
    if not Path(cwd).is_dir() or not Path(cwd).samefile(Path.cwd()):
        raise pytest.UsageError(f"--otval-resume {run}: it was begun in {cwd}: go there first")
    given = _without(list(map(str, config.invocation_params.args)))
    recorded = _without(list(map(str, before)))
    config.stash[_COMMAND] = [*recorded, *given]
    # Behind what ini files and $PYTEST_ADDOPTS say, as it stood then, and before what is said now.
    at = len(args) - len(config.invocation_params.args)
    args[at:at] = recorded
    config.pluginmanager.consider_preparse(recorded, exclude_only=False)


def _without(args: list[str]) -> list[str]:
    """Return a command line without where it wrote."""
    found: list[str] = []
    skip = False
    for arg in args:
        if skip or arg.startswith(tuple(f"{option}=" for option in OF_RESUMING)):
            skip = False
        elif arg in OF_RESUMING:
            skip = True
        else:
            found.append(arg)
    return found
