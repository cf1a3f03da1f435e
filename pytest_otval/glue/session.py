"""The course of a run: what it was asked for, where it writes, and how it ends.

The controller (or the only process) decides the run folder, sweeps, probes and writes run.json before the first item;
workers read that file.
"""

from __future__ import annotations

import dataclasses
import os
import platform
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_otval.core import Conclusion, OtvalUsageError
from pytest_otval.glue import extensions, options
from pytest_otval.glue.contracting import contract_of, refuse_drift, refuse_other_choices, select
from pytest_otval.glue.engine import Engine
from pytest_otval.glue.judge_options import require_judge
from pytest_otval.glue.marks import chosen_stages
from pytest_otval.glue.narrow import leave_out, narrow
from pytest_otval.glue.notes import warn
from pytest_otval.glue.plan import ENGINE, OUT, PLAN, Plan
from pytest_otval.glue.requirements import require_models
from pytest_otval.glue.resuming import command_of, run_to_resume
from pytest_otval.glue.selection import Selection, split
from pytest_otval.glue.submit_options import runs_elsewhere
from pytest_otval.glue.teacher_options import require_teacher
from pytest_otval.ledger import find_run, write_run
from pytest_otval.task.source import FolderSource
from pytest_otval.workspace import Workspace

if TYPE_CHECKING:
    from pytest_otval.contract.model import Contract

WORKER_KEY, TRIALS_KEY = "otval_out", "otval_trials"


def is_worker(config: pytest.Config) -> bool:
    """Whether this process is an xdist worker."""
    return hasattr(config, "workerinput")


def _worker_input(config: pytest.Config) -> dict[str, Any]:
    return dict(vars(config)["workerinput"])


def take_arguments(config: pytest.Config) -> None:
    """Take our arguments out of pytest's hands. Raises UsageError."""
    places = extensions.places(config)
    try:
        unprepared: list[str] = []
        offline = bool(config.getoption("--otval-offline"))
        if offline and config.getoption("--otval-save-runtimes"):
            raise OtvalUsageError("--otval-save-runtimes installs, and --otval-offline fetches nothing: leave one out")
        contract = contract_of(config)
        if contract is not None:
            _take_settings(config, contract)
        stages = extensions.stages(config)
        if contract is None:
            selection, rest = split(config.args, config.invocation_params.dir, places, stages, unprepared, offline)
        else:
            selection, rest = _select(config, contract, places, stages), []
        if not selection:
            if unprepared:
                raise OtvalUsageError("; ".join(unprepared))
            return
        _refuse_options_of_fixtures(config)
        ignored, globs = config.getoption("ignore") or (), config.getoption("ignore_glob") or ()
        leave_out(selection, ignored, globs, config.args)
        narrow(selection, config.getoption("--otval-tasks"), config.getoption("--otval-limit"))
        require_teacher(config, stages.values())
        require_judge(config, stages.values())
        _take_trials(config)
        chosen = tuple(stages) if contract else chosen_stages(stages.values(), str(config.option.markexpr))
        if config.getoption("--otval-fix"):
            _refuse_fixing(selection, chosen)
        out = _out(config, Workspace.from_environment())
    except OtvalUsageError as error:
        raise options.as_usage_error(error) from None
    if unprepared and not offline and not is_worker(config):
        warn(config, f"left out: {'; '.join(unprepared)}", "datasets")
    config.args = rest
    given = tuple(command_of(config))
    left = tuple(unprepared if offline else ())
    config.stash[PLAN] = Plan(selection, chosen, tuple(stages), given, contract, left)
    config.stash[OUT] = out
    worker = str(_worker_input(config)["workerid"]) if is_worker(config) else "main"
    config.stash[ENGINE] = Engine(config, out, worker)


def _take_trials(config: pytest.Config) -> None:
    """Put the folder of the run whose attempts are reviewed in place of its name, before this run is the latest."""
    if is_worker(config):
        config.option.otval_trials = _worker_input(config)[TRIALS_KEY]
    elif name := str(config.getoption("--otval-trials")):
        run = find_run(name)
        if not (run / "ledger").is_dir():
            raise OtvalUsageError(f"--otval-trials {name}: {run} is no run folder: it has no ledger")
        config.option.otval_trials = str(run)


def _take_settings(config: pytest.Config, contract: Contract) -> None:
    if not is_worker(config):
        refuse_other_choices(config, contract)
    options.apply_settings(config, contract.settings)
    extensions.ask_for_stages_again(config)


def _select(config: pytest.Config, contract: Contract, places: Iterable[Path], stages: Iterable[str]) -> Selection:
    """Take a contract in place of arguments."""
    # A run that was submitted has its tasks with it, wherever somebody attaches to it.
    own = [Path(str(config.getoption("--otval-out")))] if config.getoption("--otval-attach") else []
    return select(contract, (config.invocation_params.dir, *places, *own), stages)


def _refuse_options_of_fixtures(config: pytest.Config) -> None:
    """Refuse what would ask the stages and then not tell their answers: a set-up without a call."""
    if config.getoption("setuponly", False):
        raise pytest.UsageError("--setup-only and --setup-plan show fixtures, and tasks have none: list them by --co")


def _refuse_fixing(selection: Selection, chosen: tuple[str, ...]) -> None:
    """Refuse to repair what static does not look at, and what lies in a packed file. Raises OtvalUsageError."""
    named = {stage for dataset in selection.values() for stages in dataset.tasks.values() for stage in stages or ()}
    if "static" not in {*chosen, *named}:
        raise OtvalUsageError("--otval-fix repairs in the static stage: select it too, as by -m static")
    for name, dataset in sorted(selection.items()):
        if not isinstance(dataset.source, FolderSource):
            how = f"python -m pytest_otval dataset unpack {dataset.path} FOLDER"
            raise OtvalUsageError(f"--otval-fix cannot change packed tasks, as those of {name}: unpack first ({how})")


def share_rootdir(config: pytest.Config) -> None:
    """Give workers, which xdist starts with our own arguments, this process's rootdir and ini file.

    pytest looks for both before it knows options of plugins, so it takes the DIR of ``--otval-out DIR`` for an
    argument, and finds something else as soon as that folder exists. Where this process read no ini file, as none of a
    task, workers must not look for one either.
    """
    given = (f"--rootdir={config.rootpath}", f"--config-file={config.inipath or os.devnull}")
    params = config.invocation_params
    config.invocation_params = dataclasses.replace(params, args=(*given, *params.args))


def _out(config: pytest.Config, workspace: Workspace) -> Path:
    if is_worker(config):
        return Path(_worker_input(config)[WORKER_KEY])
    known = config.stash.get(OUT, None) or run_to_resume(config)
    return known or options.run_folder(config, workspace)


def tell_worker(config: pytest.Config, workerinput: dict[str, Any]) -> None:
    """Give a worker the run folder; decided here if the controller did not yet."""
    workspace = os.environ.get("OT_WORKSPACE", "")
    workerinput[TRIALS_KEY] = str(config.getoption("--otval-trials"))
    if not workspace:
        workerinput[WORKER_KEY] = ""
        return
    out = config.stash.get(OUT, None) or options.run_folder(config, Workspace(Path(workspace)))
    config.stash[OUT] = out
    workerinput[WORKER_KEY] = str(out)


def prepare(config: pytest.Config) -> None:
    """Sweep what killed runs left, find the flavour, write run.json unless nothing is to be run. Raises UsageError."""
    if PLAN not in config.stash or is_worker(config):
        return
    from pytest_otval.images.bases import chosen_sources
    from pytest_otval.profile import load_profile
    from pytest_otval.stages.machine import probe_flavour

    try:
        workspace = Workspace.from_environment()
        profile = load_profile(options.cluster_name(config), config.rootpath)
        chosen_sources(profile, extensions.image_sources(config, profile, workspace.images, offline=True))
        here = not (runs_elsewhere(config) or config.getoption("--otval-prepare-contract"))
        if here and not config.option.collectonly:
            require_models(config, profile)
    except OtvalUsageError as error:
        raise options.as_usage_error(error) from None
    flavour, trouble = "", None
    swept: list[str] = []
    try:
        flavour, swept = probe_flavour(workspace, profile)
    except Conclusion as conclusion:
        trouble = {"class": conclusion.reason, "headline": conclusion.headline}
    out = config.stash[OUT]
    settings = options.make_settings(config, out, flavour, "main")
    facts = {
        "args": list(config.stash[PLAN].args),
        "cwd": str(config.invocation_params.dir),
        "cluster": profile.name,
        "flavour": flavour,
        "trouble": trouble,
        "settings": dataclasses.asdict(settings.verdict),
        "run_settings": {**dataclasses.asdict(settings.run), "out": str(out)},
        "settings_digest": settings.verdict.digest(),
        "swept": swept,
        "machine": {
            "host": platform.node(),
            "cpus": os.cpu_count(),
            "kernel": platform.release(),
            "uid": os.getuid(),
        },
        "versions": {"python": platform.python_version(), "pytest": pytest.__version__},
    }
    config.stash[ENGINE].prepared(facts)
    if config.option.collectonly or config.getoption("--otval-prepare-contract"):
        return
    if config.stash[PLAN].contract is not None:
        refuse_drift(config)
    try:
        write_run(out, facts)
    except OSError as error:
        raise pytest.UsageError(f"run folder {out} cannot be written: {error.strerror}") from None


def remember(answers: list[dict[str, Any]]) -> None:
    """Write down what the next run's schedule can use; where that is not possible nothing is lost but time."""
    workspace = os.environ.get("OT_WORKSPACE", "")
    if answers and workspace:
        from pytest_otval.history import learn

        with suppress(OSError):
            learn(Path(workspace) / "history", answers)


def header(config: pytest.Config) -> list[str]:
    """Return the lines at the top of a run."""
    workspace = os.environ.get("OT_WORKSPACE", "")
    return [f"otval: workspace {workspace}, cluster {options.cluster_name(config)}"] if workspace else []
