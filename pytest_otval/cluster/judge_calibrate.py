"""What ``python -m pytest_otval judge calibrate`` does."""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from pytest_otval.cluster.environments import environments_below
from pytest_otval.cluster.judge_panel import Panel
from pytest_otval.core import Conclusion, OtvalUsageError, printable
from pytest_otval.evidence import EvidenceError
from pytest_otval.judge.calibration import Calibration, add_calibration, table_lines
from pytest_otval.judge.files import task_material
from pytest_otval.judge.labels import agreement, is_finding, labels
from pytest_otval.judge.material import Material
from pytest_otval.judge.model import Kind, Review, Rubric, Spending
from pytest_otval.judge.rubric import own_rubric, read_rubric
from pytest_otval.judge.seeding.planting import copy_task, plant
from pytest_otval.judge.seeding.texts import Fault
from pytest_otval.judge.seeding.traces import TRACE_SEEDS
from pytest_otval.judge.seeds import faults
from pytest_otval.judge.tally import tallies
from pytest_otval.judge.trace import trace_material
from pytest_otval.ledger import read_ledger
from pytest_otval.stages.attempted import trajectory_of
from pytest_otval.stages.spec import TEACHER
from pytest_otval.task.load import load_task
from pytest_otval.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Case:
    """What a judge is shown, and which fault is in it."""

    material: Material
    fault: Fault | None


def calibrate(arguments: argparse.Namespace) -> int:
    """Measure a judge, print the counts, and keep them for runs. Raises OtvalUsageError, Conclusion."""
    workspace = Workspace.from_environment()
    kind = _kind(arguments.paths)
    rubric = _rubric(arguments.rubric, kind, workspace)
    panel = Panel(arguments, rubric, workspace)
    with tempfile.TemporaryDirectory(prefix="otval-calibrate-") as scratch:
        cases = _task_cases if kind == "instruction" else _trace_cases
        reviews, unreadable = _reviewed(
            panel, islice(cases(arguments.paths, rubric, panel.characters, Path(scratch)), arguments.limit)
        )
    if not reviews:
        raise OtvalUsageError(f"nothing was reviewed below {', '.join(map(str, arguments.paths))}: give sound tasks")
    people = agreement(labels(workspace.judges), panel.model, rubric.digest)
    sound = [review for fault, review in reviews if fault is None]
    calibration = Calibration(
        model=panel.model,
        endpoint=panel.endpoint,
        kind=kind,
        rubric=rubric.digest,
        votes=arguments.votes,
        floor=arguments.floor,
        untouched=len(sound),
        alarmed=sum(_alarms(review, rubric) for review in sound),
        seeded=len(reviews) - len(sound),
        unreadable=unreadable,
        time=datetime.now(UTC).isoformat(timespec="seconds"),
        tallies=tallies(rubric, reviews, people),
    )
    add_calibration(workspace.judges, calibration)
    print(_cost(sum((review.spending for _, review in reviews), Spending())), file=sys.stderr)
    for line in table_lines(calibration, rubric):
        print(printable(line))
    if arguments.json:
        arguments.json.write_text(json.dumps(calibration.as_dict(), indent=1) + "\n", encoding="ascii")
    return 0


def _alarms(review: Review, rubric: Rubric) -> bool:
    blocking = {one.id for one in rubric.criteria if one.blocking}
    return any(is_finding(one) and one.criterion in blocking for one in review.judgements)


def _cost(spent: Spending) -> str:
    usd = "" if spent.usd is None else f", {spent.usd:.4f} USD"
    return f"{spent.answers} answers, {spent.cached} from the cache, {spent.prompt + spent.completion} tokens{usd}"


def _kind(paths: Sequence[Path]) -> Kind:
    runs = [(path / "ledger").is_dir() for path in paths]
    if any(runs) and not all(runs):
        raise OtvalUsageError("tasks and runs have rubrics of different kinds: give one kind of path at a time")
    return "trace" if any(runs) else "instruction"


def _rubric(file: Path | None, kind: Kind, workspace: Workspace) -> Rubric:
    if file is None:
        return own_rubric(kind, [Path.cwd(), workspace.root])
    rubric = read_rubric(file)
    if rubric.kind != kind:
        raise OtvalUsageError(f"{file}: is of kind {rubric.kind!r}, and the paths are judged by {kind!r}")
    return rubric


def _reviewed(panel: Panel, groups: Iterator[tuple[str, list[Case]]]) -> tuple[list[tuple[Fault | None, Review]], int]:
    """Return what was said of each case, and how many answers could not be read."""
    reviews: list[tuple[Fault | None, Review]] = []
    unreadable = 0
    with ThreadPoolExecutor(panel.at_a_time) as pool:
        for name, cases in groups:
            print(printable(f"{name}: {len(cases)} reviews"), file=sys.stderr, flush=True)
            # Which of them is the sound one is nothing that an order should give away.
            mixed = sorted(cases, key=lambda case: _mixed(name, case.fault))
            for case, review in zip(mixed, pool.map(panel.review, (case.material for case in mixed)), strict=True):
                if review is None:
                    unreadable += 1
                else:
                    reviews.append((case.fault, review))
    return reviews, unreadable


def _mixed(name: str, fault: Fault | None) -> bytes:
    told = f"{name}\0{fault.seed if fault else ''}".encode(errors="surrogatepass")
    return hashlib.sha256(told).digest()


def _task_cases(
    paths: Sequence[Path], rubric: Rubric, characters: int, scratch: Path
) -> Iterator[tuple[str, list[Case]]]:
    """Yield the cases of each task. Also the sound one is a copy, so that copies give nothing away."""
    for environment in environments_below(paths, scratch):
        if not environment.is_task:
            continue
        try:
            if environment.refused is not None:
                raise environment.refused
            yield environment.name, _cases_of_task(environment.folder, rubric, characters, scratch)
        except Conclusion as conclusion:
            print(printable(f"{environment.name}: left out: {conclusion}"), file=sys.stderr)


def _cases_of_task(folder: Path, rubric: Rubric, characters: int, scratch: Path) -> list[Case]:
    task = load_task(folder, folder.parent.name)
    if task.config is None:
        raise Conclusion("bad-task", "its task.toml cannot be read")
    cases = []
    for fault in (None, *faults(task, rubric)):
        with tempfile.TemporaryDirectory(dir=scratch) as place:
            copy = Path(place) / folder.name
            copy_task(folder, copy)
            if fault is not None:
                plant(fault, copy)
            cases.append(Case(task_material(load_task(copy, task.dataset), characters), fault))
    return cases


def _trace_cases(
    paths: Sequence[Path], rubric: Rubric, characters: int, scratch: Path
) -> Iterator[tuple[str, list[Case]]]:
    """Yield the cases of each attempt without flags. What was counted of it is not shown: seeds do not change that."""
    asked = {one.id for one in rubric.criteria}
    for run in paths:
        found = {line["id"]: line for line in read_ledger(run) if _is_honest(line)}
        for id, line in sorted(found.items()):
            try:
                sound = trajectory_of(run, str(line.get("evidence") or ""))
            except (EvidenceError, OSError) as error:
                print(printable(f"{id}: left out: {error}"), file=sys.stderr)
                continue
            seeded = [seed.put(sound) for seed in TRACE_SEEDS if seed.criterion in asked]
            pairs = [(None, sound), *filter(None, seeded)]
            yield id, [Case(trace_material("", trajectory, {}, characters), fault) for fault, trajectory in pairs]


def _is_honest(line: dict[str, object]) -> bool:
    """Whether a line is an attempt that came to an end, and that nothing speaks against."""
    facts = line.get("trajectory")
    is_attempt = line.get("kind") == "result" and line.get("stage") == TEACHER.mark and isinstance(line.get("id"), str)
    return is_attempt and line.get("verdict") in ("pass", "fail") and isinstance(facts, dict) and not facts.get("flags")
