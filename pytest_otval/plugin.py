"""The pytest plugin: each hook is one call into the module that knows."""

from __future__ import annotations

import gc
import os
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_otval import hookspecs
from pytest_otval.glue import collect, extensions, guard, options, outcome
from pytest_otval.glue.contracting import Kept, require_all_collected
from pytest_otval.glue.crash import report_killed_item
from pytest_otval.glue.interrupt import Interrupt
from pytest_otval.glue.plan import ENGINE, OUT, PLAN
from pytest_otval.glue.remembered import TellRemembered
from pytest_otval.glue.reports import register_reports
from pytest_otval.glue.requirements import require_clock
from pytest_otval.glue.resuming import repeat_command
from pytest_otval.glue.session import (
    header,
    is_worker,
    prepare,
    remember,
    share_rootdir,
    take_arguments,
    tell_worker,
)
from pytest_otval.glue.started import Started
from pytest_otval.glue.stop import PassOver, Stop
from pytest_otval.glue.submit_options import only_estimates, runs_elsewhere
from pytest_otval.stages.spec import JUDGES, TEACHER, Stage

if TYPE_CHECKING:
    from pytest_otval.checks.registry import Check
    from pytest_otval.images.bases import ImageSource
    from pytest_otval.llm.agents.base import ModelAgent
    from pytest_otval.profile import Profile
    from pytest_otval.trial.agents.base import Agent

TALLY = pytest.StashKey[outcome.Tally]()


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Let other plugins add to ours."""
    pluginmanager.add_hookspecs(hookspecs)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add our options."""
    options.add_options(parser)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config, args: list[str]) -> Generator[None, Any, Any]:
    """Load no conftest of a task; say again what a run that is resumed was asked for."""
    repeat_command(early_config, args)
    with guard.without_task_conftests(early_config):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_cmdline_main(config: pytest.Config) -> Generator[None, Any, Any]:
    """Start no workers for a contract that is only prepared, or an estimate: they alone would know the items."""
    alone = config.getoption("--otval-prepare-contract") or only_estimates(config)
    if alone and config.pluginmanager.hasplugin("xdist"):
        config.option.numprocesses = 0
    return (yield)


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Register the stages as markers and what other plugins are asked for."""
    for stage in {stage.mark: stage for stage in (*extensions.stages(config).values(), TEACHER, *JUDGES)}.values():
        config.addinivalue_line("markers", f"{stage.mark}: the {stage.mark} stage of a task: {stage.question}")
    config.addinivalue_line("markers", f"judge: {' and '.join(stage.name for stage in JUDGES)}")
    config.stash[TALLY] = tally = outcome.Tally()
    config.pluginmanager.register(pass_over := PassOver(), "otval-pass-over")
    config.pluginmanager.register(TellRemembered(config), "otval-remembered")
    config.pluginmanager.register(Interrupt(), "otval-interrupt")
    if not is_worker(config):
        config.pluginmanager.register(stop := Stop(config, pass_over), "otval-stop")
        config.pluginmanager.register(kept := Kept(config), "otval-contract")
        config.pluginmanager.register(_Counting(tally, stop, kept), "otval-counting")
        register_reports(config)
    if config.pluginmanager.hasplugin("xdist"):
        config.pluginmanager.register(_Xdist(), "otval-xdist")


def pytest_otval_datasets(config: pytest.Config) -> list[Path]:
    """Look for datasets in the project and in the workspace."""
    workspace = os.environ.get("OT_WORKSPACE", "")
    return [config.rootpath, *([Path(workspace)] if workspace else [])]


def pytest_otval_stages(config: pytest.Config) -> tuple[Stage, ...]:
    """Our own stages, one for each attempt of a teacher, and a judge's."""
    return options.own_stages_of(config)


def pytest_otval_checks() -> list[Check]:
    """Our own checks."""
    from pytest_otval.stages.machine import own_extensions

    return list(own_extensions().checks.values())


def pytest_otval_agents() -> list[Agent]:
    """The agents of oracle and noop."""
    from pytest_otval.stages.machine import own_extensions

    return list(own_extensions().agents.values())


def pytest_otval_model_agents() -> list[ModelAgent]:
    """mini-swe-agent, and a plain loop of tool calls."""
    from pytest_otval.stages.machine import own_extensions

    return list(own_extensions().model_agents.values())


def pytest_otval_image_sources(profile: Profile, store: Path, offline: bool) -> list[ImageSource]:
    """Registries, and the recipes of the cluster profile."""
    from pytest_otval.stages.machine import own_extensions

    return list(own_extensions().image_sources(profile, store, offline).values())


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Let ``-n auto`` follow what the node has for tasks; asked before anything is configured."""
    from pytest_otval.glue.workers import auto_workers

    return auto_workers(config)


class _Xdist:
    """Hooks of xdist."""

    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker where the run writes."""
        tell_worker(node.config, node.workerinput)

    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:
        """Stop before the first item where the contract's are others, or something is missing offline."""
        require_all_collected(node.config, ids)
        if node.config.getoption("--otval-offline"):
            from pytest_otval.glue.offline import require_inputs

            require_inputs(node.config, ids)

    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        """Keep the stages of a task on one worker, unless another distribution was chosen."""
        if PLAN not in config.stash or config.option.dist != "load":
            return None
        from pytest_otval.glue.schedule import make_scheduler

        return make_scheduler(config)

    def pytest_handlecrashitem(self, crashitem: str, report: Any, sched: Any) -> None:
        """Report what a killed worker was at as an error."""
        report_killed_item(sched.config, crashitem, report, sched)


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Say which workspace and cluster profile are used."""
    return header(config)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Take our arguments, before xdist starts workers that would stumble over a wrong one too."""
    config = session.config
    take_arguments(config)
    if PLAN in config.stash and not is_worker(config):
        share_rootdir(config)
        if config.getoption("--otval-shard"):
            config.pluginmanager.register(Started(config.stash[OUT]), "otval-started")


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Keep pytest out of tasks and datasets; None leaves the question to others."""
    return True if guard.hidden(collection_path) else None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Spare the collector of garbage while many nodes are made."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, Any]:
    """Put the selected datasets among the session's children."""
    report = yield
    if isinstance(collector, pytest.Session) and report.passed:
        report.result = [*collect.dataset_nodes(collector), *report.result]
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Get the machine ready before the first item; True where nothing is to be run."""
    config = session.config
    offline = config.getoption("--otval-offline")
    if not config.option.collectonly:
        require_clock(config)
    alone = not is_worker(config) and not config.pluginmanager.hasplugin("dsession")
    if alone:
        require_all_collected(config, [item.nodeid for item in session.items])
    elsewhere = runs_elsewhere(config) and not config.option.collectonly
    preparing = config.getoption("--otval-prepare-contract") and not config.option.collectonly
    if elsewhere and not preparing:
        from pytest_otval.glue.submitting import require_run_folder

        require_run_folder(config)
    if (offline or not config.option.collectonly) and not config.getoption("--otval-attach"):
        prepare(config)
    if preparing:
        from pytest_otval.glue.preparing import prepare_contract

        prepare_contract(session)
        return True
    if elsewhere:
        from pytest_otval.glue.submitting import run_elsewhere

        return run_elsewhere(session)
    if only_estimates(config) and PLAN in config.stash and not config.option.collectonly:
        from pytest_otval.glue.estimating import tell_estimates

        tell_estimates(session)
        return True
    # A controller of workers collects nothing, and hears from them.
    if offline and alone:
        from pytest_otval.glue.offline import require_inputs

        require_inputs(config, [item.nodeid for item in session.items])
    return None


def pytest_report_teststatus(report: Any) -> tuple[str, str, str] | None:
    """Show blocked and n/a as what they are."""
    return outcome.letters(report) if isinstance(report, pytest.TestReport) else None


class _Counting:
    """Counts reports on the controller and decides the exit status."""

    def __init__(self, tally: outcome.Tally, stop: Stop, kept: Kept) -> None:
        self.tally = tally
        self.stop = stop
        self.kept = kept

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a report."""
        self.tally.add(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Count what could not be collected, where the run goes on in spite of it."""
        self.tally.other_failures += report.failed

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Say how the run ended, before anybody prints it, and remember how long stages took."""
        session.exitstatus = self.stop.exit_status(self.kept.exit_status(self.tally.exit_status(int(exitstatus))))
        remember(self.tally.answers)
        reporter = session.config.pluginmanager.getplugin("terminalreporter")
        if reporter is not None and self.tally.answers:
            outcome.forget_quiet_phases(reporter)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Give back what the machine holds."""
    engine = session.config.stash.get(ENGINE, None)
    if engine is not None:
        engine.close()


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Write our table."""
    if PLAN in config.stash and not config.option.collectonly:
        planned = config.getoption("--otval-k")
        outcome.write_summary(terminalreporter, config.stash[TALLY], config.stash[OUT], planned)
