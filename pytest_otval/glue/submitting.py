"""``--otval-submit``: from collected items to an array of jobs, and back to reports where somebody waits for them."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_otval.cluster import preflight, submission
from pytest_otval.cluster.job_pytest import CONTRACT
from pytest_otval.cluster.preparing import make_images, make_staging, works
from pytest_otval.cluster.request import Models, Request, limits, make_request, write_request
from pytest_otval.cluster.resumption import reopen, require_resumable
from pytest_otval.cluster.shards import Plan, plan_shards, shard_count, write_plan
from pytest_otval.cluster.staging import write_staging
from pytest_otval.cluster.submission import Element
from pytest_otval.contract.file import write_contract
from pytest_otval.contract.model import Contract, Submission
from pytest_otval.contract.pinning import Wanted
from pytest_otval.core import Conclusion, OtvalUsageError, printable
from pytest_otval.glue import options
from pytest_otval.glue.contracting import wanted_of, write_line
from pytest_otval.glue.front import follow
from pytest_otval.glue.plan import ENGINE, OUT, PLAN
from pytest_otval.glue.preparing import contract_of_items
from pytest_otval.glue.requirements import require_models
from pytest_otval.profile import Profile, load_profile
from pytest_otval.workspace import Workspace

NOT_THERE = ("--otval-fix", "--otval-save-runtimes", "--otval-keep", "--otval-reuse", "--otval-judge")
"""Options that change tasks where they lie, or are about other run folders. A judge reads what all jobs brought."""

SAFE_PATH = re.compile(r"/[A-Za-z0-9._+/-]*/[A-Za-z0-9._-]+")
"""Run folders whose name can be a job's and whose path can stand in options of sbatch, where % and , mean more."""

SCRIPT = "submission.sh"
"""What a dry run writes."""


def run_elsewhere(session: pytest.Session) -> bool:
    """Submit, or attach to, a run, and stay in front if that is wished. Raises UsageError."""
    config = session.config
    if config.pluginmanager.hasplugin("dsession"):
        raise pytest.UsageError("-n starts workers here, and nothing runs here: leave it out; jobs have --otval-cpus")
    try:
        if not config.getoption("--otval-attach"):
            _submit(session)
        if config.getoption("--otval-attach") or (
            config.getoption("--otval-wait") and not config.getoption("--otval-dry-run")
        ):
            follow(session, config.stash[OUT])
    except OtvalUsageError as error:
        raise options.as_usage_error(error) from None
    except Conclusion as conclusion:
        raise pytest.UsageError(f"--otval-submit: {conclusion.headline}") from None
    return True


def _submit(session: pytest.Session) -> None:
    config, run = session.config, session.config.stash[OUT]
    for option in NOT_THERE:
        if config.getoption(option):
            raise OtvalUsageError(f"{option} is of runs on this machine: it cannot be submitted, leave it out")
    resumes, dry = bool(config.getoption("--otval-resume")), bool(config.getoption("--otval-dry-run"))
    if resumes and dry:
        raise OtvalUsageError("--otval-dry-run writes down a new run: leave --otval-resume out")
    contract, wanted = _contract(session)
    if resumes:
        contract = require_resumable(run, contract)
    chosen = _chosen(config, contract)
    profile = load_profile(chosen.profile, config.rootpath)
    request = _request(config, profile, chosen)
    preflight.require_visible(profile, request.partition, run)
    if request.models.served:
        preflight.require_visible(profile, request.partition, Workspace.from_environment().models)
    if resumes:
        elements = reopen(run)
    else:
        plan = _plan(contract, profile, request, chosen.shards)
        elements = [Element(shard) for shard in range(len(plan))]
        write_contract(run / CONTRACT, contract)
        write_plan(run, plan)
    write_request(run, request)
    count = sum(len(element.items or ()) for element in elements) if resumes else contract.count
    write_line(config, f"otval: {count} items in {len(elements)} jobs of {request.cpus} cores")
    if dry:
        _write_script(config, run, request, len(elements))
    elif elements:
        _send(config, profile, request, contract, wanted, elements)


def _request(config: pytest.Config, profile: Profile, chosen: Submission) -> Request:
    """Return what is asked of Slurm, and what jobs are told. Raises OtvalUsageError."""
    sections = require_models(config, profile)
    keys = sorted({section.key_variable for section in sections.values()} - {""})
    plugins = [name for name in config.option.plugins if not name.startswith("no:") and name != "pytester"]
    tokens, usd = config.getoption("--otval-budget-tokens"), config.getoption("--otval-budget-usd")
    served = [name for name, section in sections.items() if section.serve.in_job and not section.base_url]
    base_url = str(config.getoption("--otval-base-url"))
    models = Models(tuple(sections), base_url, tokens, usd, tuple(keys), tuple(served))
    request = make_request(profile, chosen.partition, chosen.cpus, chosen.time, plugins, models)
    return replace(request, by_contract=config.stash[PLAN].contract is not None)


def _send(
    config: pytest.Config,
    profile: Profile,
    request: Request,
    contract: Contract,
    wanted: Sequence[Wanted],
    elements: Sequence[Element],
) -> None:
    """Make what jobs need, and submit them. Raises OtvalUsageError, Conclusion."""
    run, engine = config.stash[OUT], config.stash[ENGINE]
    assert profile.slurm is not None
    if profile.slurm.build_on == "login":
        make_images(engine.machine, contract, wanted, lambda text: write_line(config, f"otval: {text}"))
    folders = {one.dataset.name: one.source.path for one in wanted}
    staging = make_staging(run, contract, folders, profile, request.plugins)
    write_staging(run, staging)
    more = preflight.expected(len(elements), contract.count, staging.bytes, bool(request.models.names))
    preflight.require_room(profile, Workspace.from_environment().root, run, more)
    array = submission.submit(run, request, elements, resumes=bool(config.getoption("--otval-resume")))
    write_line(config, f"otval: submitted as job {array.job}: {run}")
    for line in commands(run):
        write_line(config, f"otval: {line}")


def require_run_folder(config: pytest.Config) -> None:
    """Raise UsageError where no task is selected, or the run folder is none to submit to."""
    if PLAN not in config.stash:
        raise pytest.UsageError("--otval-submit: no task is selected")
    run: Path = config.stash[OUT]
    if config.getoption("--otval-attach"):
        return
    if not SAFE_PATH.fullmatch(str(run)):
        raise pytest.UsageError(
            f"--otval-out {printable(str(run))!r}: Slurm takes run folders of letters, digits and . _ + - / alone"
        )
    if (run / CONTRACT).exists() and not config.getoption("--otval-resume"):
        raise pytest.UsageError(f"{run} was submitted before: leave --otval-out out, attach to it, or resume it")


def commands(run: Path) -> list[str]:
    """Return what can be done with a submitted run."""
    folder = shlex.quote(str(run))
    return [f"python -m pytest_otval {command} {folder}" for command in ("status", "attach", "cancel")]


def _contract(session: pytest.Session) -> tuple[Contract, Sequence[Wanted]]:
    plan = session.config.stash[PLAN]
    if plan.contract is None:
        contract, wanted, _ = contract_of_items(session)
        return contract, wanted
    if session.config.getoption("--otval-shard"):
        raise OtvalUsageError("--otval-submit makes shards itself: leave --otval-shard out")
    return plan.contract, list(wanted_of(plan.contract, plan.selection))


def _chosen(config: pytest.Config, contract: Contract) -> Submission:
    """Return what the command line says, and where that says nothing, the contract for the same profile."""
    profile = str(config.getoption("--otval-submit"))
    before = contract.submission
    if before is None or before.profile != profile:
        before = Submission(profile)
    return Submission(
        profile,
        str(config.getoption("--otval-partition")) or before.partition,
        int(config.getoption("--otval-cpus")) or before.cpus,
        str(config.getoption("--otval-time")) or before.time,
        int(config.getoption("--otval-shards")) or before.shards,
    )


def _plan(contract: Contract, profile: Profile, request: Request, shards: int) -> Plan:
    items = works(contract, Workspace.from_environment().root / "history")
    bounds = limits(profile, request)
    if shards > bounds.most:
        raise OtvalUsageError(f"--otval-shards {shards}: the profile allows {bounds.most} jobs")
    return plan_shards(items, shards or shard_count(items, bounds))


def _write_script(config: pytest.Config, run: Path, request: Request, count: int) -> None:
    (run / SCRIPT).write_text(submission.script(run, request, count))
    shutil.rmtree(run / submission.LOGS, ignore_errors=True)
    write_line(config, f"otval: nothing is submitted; {run / SCRIPT} and shards.json beside it say what would be")
