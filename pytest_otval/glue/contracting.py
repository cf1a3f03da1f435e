"""``--otval-contract``: a run that is what a contract says, nothing else, and refused where that is no longer here."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_otval.core import OtvalUsageError
from pytest_otval.glue import extensions, options
from pytest_otval.glue.plan import ENGINE, OUT, PLAN
from pytest_otval.glue.selection import DatasetSelection, Selection
from pytest_otval.glue.submit_options import returns_at_once

if TYPE_CHECKING:
    from pytest_otval.contract.model import Contract, DatasetPin
    from pytest_otval.contract.pinning import Wanted
    from pytest_otval.stages.spec import Stage

SELECTING: Mapping[str, str] = {
    "keyword": "-k",
    "markexpr": "-m",
    "lf": "--lf",
    "deselect": "--deselect",
    "ignore": "--ignore",
    "ignore_glob": "--ignore-glob",
    "stepwise": "--stepwise",
    "otval_tasks": "--otval-tasks",
    "otval_limit": "--otval-limit",
    "otval_fix": "--otval-fix",
    "otval_save_runtimes": "--otval-save-runtimes",
    "otval_prepare_contract": "--otval-prepare-contract",
    "otval_strict_images": "--otval-strict-images",
}
"""Options that choose items or change tasks, by where pytest keeps them."""

MOST_SHOWN = 40
"""Differences that a refusal lists."""


def contract_of(config: pytest.Config) -> Contract | None:
    """Return the part of a contract that this run is to carry out. Raises OtvalUsageError."""
    name = str(config.getoption("--otval-contract"))
    shard = str(config.getoption("--otval-shard"))
    if not name:
        if shard:
            raise OtvalUsageError("--otval-shard is a part of a contract: give --otval-contract, too")
        return None
    from pytest_otval.contract.file import read_contract
    from pytest_otval.contract.settings import settings_of
    from pytest_otval.contract.shard import items_of_shard

    # The user's own file may be a link, such as latest.json.
    path = (config.invocation_params.dir / name).resolve()
    contract = read_contract(path)
    settings_of(contract, "")
    part = contract.only(items_of_shard(contract, path.parent, shard)) if shard else contract
    if not part.count:
        raise OtvalUsageError(f"--otval-contract {name}: {f'shard {shard}' if shard else 'it'} has no item")
    return part


def refuse_other_choices(config: pytest.Config, contract: Contract) -> None:
    """Raise OtvalUsageError for a command line that says what the contract has said."""
    if config.args_source is pytest.Config.ArgsSource.ARGS:
        raise OtvalUsageError(f"--otval-contract fixes what is run: leave {config.args[0]} out")
    if getattr(config.option, "dist", "no") == "each":
        raise OtvalUsageError("--dist each runs every item several times, and a contract has each once: leave it out")
    for place, option in SELECTING.items():
        if getattr(config.option, place, None):
            raise OtvalUsageError(f"--otval-contract fixes what is run: leave {option} out")
    given = options.contract_settings(config)
    for name, value in given.items():
        if value != contract.settings.get(name):
            option = options.option_of(name)
            raise OtvalUsageError(f"--otval-contract fixes the settings, and {option} differs from it: leave it out")


def select(contract: Contract, places: Iterable[Path], stages: Iterable[str]) -> Selection:
    """Return what a contract's items are collected from. Raises OtvalUsageError."""
    from pytest_otval.contract.place import dataset_folder_of

    places, known = tuple(places), set(stages)
    selection: Selection = {}
    for name, pin in sorted(contract.datasets.items()):
        unknown = {stage for stages in (*pin.stages, pin.own) for stage in stages} - known
        if unknown:
            raise OtvalUsageError(f"the contract has a stage {min(unknown)!r} that no plugin gives here")
        tasks = {task: frozenset(pin.stages[one.stages]) for task, one in pin.tasks.items()}
        folder = dataset_folder_of(name, pin, places)
        selection[name] = DatasetSelection(folder, tasks=dict(tasks), own_stages=bool(pin.own))
    return selection


def wanted_of(contract: Contract, selection: Selection) -> Iterator[Wanted]:
    """Yield what is to be looked at of each dataset of a contract."""
    from pytest_otval.contract.model import stages_of
    from pytest_otval.contract.pinning import Wanted
    from pytest_otval.task.dataset import load_dataset

    for name, pin in sorted(contract.datasets.items()):
        chosen = selection[name]
        yield Wanted(load_dataset(chosen.path), chosen.source, dict(stages_of(pin)), pin.own, pin.folder, pin.left_out)


def refuse_drift(config: pytest.Config) -> None:
    """Raise UsageError where tasks, images, runtimes or settings are no longer what the contract says, naming each."""
    from pytest_otval.contract.compare import HARMLESS
    from pytest_otval.contract.drift import drift
    from pytest_otval.workspace import Workspace

    plan, engine = config.stash[PLAN], config.stash[ENGINE]
    contract = plan.contract
    assert contract is not None
    require_containers(config, contract)
    contracts = Workspace.from_environment().contracts
    wanted = wanted_of(contract, plan.selection)
    try:
        drifted = drift(contract, wanted, engine.machine, extensions.stages(config), contracts)
    except OtvalUsageError as error:
        raise options.as_usage_error(error) from None
    differences = [one for one in drifted.found if one.kind not in HARMLESS]
    if not differences:
        return
    for one in differences[:MOST_SHOWN]:
        write_line(config, f"drift: {one}")
    counts = Counter(one.kind for one in differences)
    words = ", ".join(f"{kind} {count}" for kind, count in counts.items())
    name = config.getoption("--otval-contract")
    raise pytest.UsageError(
        f"{name} no longer holds: {len(differences)} differences ({words}); undo them, or see "
        f"`python -m pytest_otval contract update {name}`"
    )


def require_containers(config: pytest.Config, contract: Contract | None) -> None:
    """Raise UsageError where images cannot be told, since this machine runs no container."""
    engine = config.stash[ENGINE]
    if not engine.runs_containers and (contract is None or _needs_containers(contract, extensions.stages(config))):
        raise pytest.UsageError(f"no contract without containers: {engine.trouble['headline']}")


def _needs_containers(contract: Contract, stages: Mapping[str, Stage]) -> bool:
    return any(
        stages[stage].containers
        for pin in contract.datasets.values()
        for one in pin.tasks.values()
        for stage in pin.stages[one.stages]
    )


def require_all_collected(config: pytest.Config, ids: Iterable[str]) -> None:
    """Raise UsageError where something kept an item of the contract from being collected, or added one."""
    plan = config.stash.get(PLAN, None)
    if plan is None or plan.contract is None:
        return
    found, wanted = set(ids), {item.id for item in plan.contract.items()}
    lost, more = sorted(wanted - found), sorted(found - wanted)
    if lost:
        raise pytest.UsageError(f"{len(lost)} items of the contract were not collected, such as {lost[0]}")
    if more:
        raise pytest.UsageError(f"{len(more)} items are not in the contract, such as {more[0]}: a plugin adds them")


def write_line(config: pytest.Config, line: str, **markup: bool) -> None:
    """Write a line of ours to the terminal."""
    reporter: Any = config.pluginmanager.getplugin("terminalreporter")
    if reporter is not None:
        reporter.ensure_newline()
        reporter.write_line(line, **markup)


class Kept:
    """On the controller: whether every item of the contract ended as it says."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._seen: set[str] = set()
        self._inapplicable: dict[str, str] = {}
        """Class by id, where the contract does not expect it."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note how an item ended."""
        from pytest_otval.glue.outcome import answer_of, decides

        answer = answer_of(report) if decides(report) else None
        if answer is not None:
            self._seen.add(report.nodeid)
            if answer["verdict"] == "n/a" and not answer["known_bad"]:
                self._inapplicable[report.nodeid] = answer["class"]

    def _count(self) -> int:
        plan = self._config.stash.get(PLAN, None)
        if plan is None or plan.contract is None or returns_at_once(self._config) or self._config.option.collectonly:
            return 0
        if self._config.getoption("--otval-attach") == "run":
            # It only says which items a run has.
            return 0
        return int(plan.contract.count)

    def exit_status(self, status: int) -> int:
        """Return the run's exit status: a contract is kept only where every item ended as expected."""
        if not self._count():
            return status
        if status == pytest.ExitCode.NO_TESTS_COLLECTED and self._seen:
            status = int(pytest.ExitCode.OK)
        short = len(self._seen) < self._count() or bool(self._inapplicable)
        return int(pytest.ExitCode.TESTS_FAILED) if short and status in (0, options.ERRORS_ONLY) else status

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say what is missing for the contract to be kept."""
        if not self._count() or self._config.option.collectonly or OUT not in self._config.stash:
            return
        for nodeid, reason in sorted(self._inapplicable.items())[:MOST_SHOWN]:
            terminalreporter.write_line(f"contract: {nodeid}: n/a {reason} is not expected", red=True)
        left = self._count() - len(self._seen)
        if left:
            terminalreporter.write_line(f"contract: {left} of {self._count()} items were not run", red=True)


def known_bad_of(pin: DatasetPin) -> dict[str, Any]:
    """Return the tasks that a contract expects to be bad, as dataset.toml would say it."""
    from pytest_otval.task.dataset import KnownBad

    return {
        name: KnownBad(bad.reason, bad.owner, datetime.date.fromisoformat(bad.expires), bad.stages)
        for name, bad in pin.known_bad.items()
    }
