"""``--otval-prepare-contract``: what a run would do is written down, and nothing is run."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

import pytest

from pytest_otval.contract.file import write_contract
from pytest_otval.contract.files import Files, Key, keep_files
from pytest_otval.contract.model import Contract, Submission
from pytest_otval.contract.pinning import Pinner, Wanted
from pytest_otval.core import OtvalUsageError
from pytest_otval.glue import extensions, options
from pytest_otval.glue.collect import DatasetNode
from pytest_otval.glue.contracting import require_containers, write_line
from pytest_otval.glue.engine import Engine
from pytest_otval.glue.item import DatasetItem, StageItem
from pytest_otval.glue.plan import ENGINE, PLAN
from pytest_otval.workspace import Workspace

OPTION = "--otval-prepare-contract"


def prepare_contract(session: pytest.Session) -> None:
    """Write the contract of the collected items. Raises UsageError."""
    config = session.config
    path = config.invocation_params.dir / str(config.getoption(OPTION))
    try:
        contract, _, files = contract_of_items(session)
        write_contract(path, contract)
        keep_files(Workspace.from_environment().contracts, contract.digest, files)
    except OtvalUsageError as error:
        raise options.as_usage_error(error) from None
    write_line(config, f"contract {path}: {_summary(contract)}; digest {contract.digest[:12]}")


def contract_of_items(session: pytest.Session) -> tuple[Contract, list[Wanted], Mapping[Key, Files]]:
    """Return the contract of the collected items, what it was made from, and the files of its tasks.

    Raises OtvalUsageError.
    """
    config = session.config
    if PLAN not in config.stash or not session.items:
        raise OtvalUsageError("a contract fixes tasks, and none is selected")
    if session.testsfailed:
        raise OtvalUsageError("a contract fixes all that is asked for, and not all of it could be collected")
    engine: Engine = config.stash[ENGINE]
    wanted = _wanted(session, engine)
    stages = extensions.stages(config)
    if any(stages[stage].containers for one in wanted for kinds in one.tasks.values() for stage in kinds):
        require_containers(config, None)
    pinner = Pinner(engine.machine, stages, strict=bool(config.getoption("--otval-strict-images")))
    return pinner.contract(wanted, submission_of(config)), wanted, pinner.files


def _summary(contract: Contract) -> str:
    tasks = sum(len(pin.tasks) for pin in contract.datasets.values())
    bad = sum(len(pin.known_bad) + len(pin.inapplicable) for pin in contract.datasets.values())
    return f"{contract.count} items of {tasks} tasks, {len(contract.images)} images, {bad} tasks not expected to pass"


def submission_of(config: pytest.Config) -> Submission | None:
    """Return how the run is to be given to a cluster; None where it is not."""
    profile = str(config.getoption("--otval-submit", ""))
    if not profile:
        return None
    out = str(config.getoption("--otval-out"))
    return Submission(
        profile=profile,
        partition=str(config.getoption("--otval-partition", "")),
        cpus=int(config.getoption("--otval-cpus", 0)),
        time=str(config.getoption("--otval-time", "")),
        shards=int(config.getoption("--otval-shards", 0)),
        out=str(Path(out).absolute()) if out else "",
    )


def _wanted(session: pytest.Session, engine: Engine) -> list[Wanted]:
    """Return the collected items by dataset. Raises OtvalUsageError for items of others."""
    tasks: dict[str, dict[str, list[str]]] = {}
    own: dict[str, list[str]] = {}
    nodes: dict[str, DatasetNode] = {}
    for item in session.items:
        node = item.parent if isinstance(item, DatasetItem) else item.parent and item.parent.parent
        if not isinstance(item, StageItem | DatasetItem) or not isinstance(node, DatasetNode):
            raise OtvalUsageError(f"{OPTION}: {item.nodeid} is no stage of a task: a contract fixes tasks alone")
        nodes[node.name] = node
        if isinstance(item, DatasetItem):
            own.setdefault(node.name, []).append(item.name)
        else:
            assert item.parent is not None
            tasks.setdefault(node.name, {}).setdefault(item.parent.name, []).append(item.name)
    return [
        Wanted(
            node.dataset,
            node.source,
            tasks.get(name, {}),
            tuple(own.get(name, ())),
            "" if engine.records.found_by_name(node.source.path, name) else str(node.source.path),
            _left_out(session, node, tasks.get(name, {})),
        )
        for name, node in sorted(nodes.items())
    ]


def _left_out(session: pytest.Session, node: DatasetNode, wanted: dict[str, list[str]]) -> dict[str, str]:
    count = len(set(node.source.names()[0]) - wanted.keys())
    if not count:
        return {}
    return {f"{count} tasks": f"not selected by: {shlex.join(map(str, session.config.invocation_params.args))}"}
