"""Export of a run as a Harbor job folder, which ``harbor view`` and Harbor's other tools read.

    OUT/config.json  result.json  TASK__XXXXXXX/{config.json, result.json, exception.txt, agent/, verifier/, ...}

Rewards and errors are those of Harbor's rules; our verdicts stay in the ledger.
"""

from __future__ import annotations

import json
import shutil
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pytest_otval.core import OtvalUsageError
from pytest_otval.evidence import EvidenceError, extract
from pytest_otval.ledger import read_ledger, read_run
from pytest_otval.trial.harbor_result import RESULT

_OF_THE_TASK = {"agent", "verifier", "artifacts", "steps"}
"""Folders of a trial that hold files a task wrote, under any name."""
_SHOWN_TEXTS = ("agent/oracle.txt", "verifier/test-stdout.txt")
"""``harbor view`` shows these only where they are UTF-8."""
_MAX_COMPLAINTS = 5
_NAMESPACE = uuid.UUID("5f0c1f0e-8a35-5d0b-9c35-6f74766c2e32")


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, allow_inf_nan=False)


class _Agent(_Strict):
    name: str


class _Exception(_Strict):
    exception_type: str
    exception_message: str


class _Rewards(_Strict):
    rewards: dict[str, float]


class _Step(_Strict):
    exception_info: _Exception | None


class _Trial(_Strict):
    """What is read here of a trial's result.json. The run may be somebody else's."""

    trial_name: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]+__[0-9a-f]{7}$")]
    source: str
    config: dict[str, Any]
    agent_info: _Agent
    started_at: str
    finished_at: str
    verifier_result: _Rewards | None
    exception_info: _Exception | None
    step_results: list[_Step] | None
    reward_valid: bool


def export(run: Path, out: Path) -> int:
    """Write the trials of a run as the job folder ``out``, which must not exist; return the exit status.

    Status 1: some trial's evidence could not be read; what it was is told on stderr. Raises OtvalUsageError, OSError.
    """
    try:
        read_run(run)
    except (OSError, ValueError):
        raise OtvalUsageError(f"{run} is no run: name a folder with a run.json") from None
    if out.exists():
        raise OtvalUsageError(f"{out} exists: name a folder that does not")
    places = _places(run)
    if not places:
        raise OtvalUsageError(f"{run} has no trials with evidence: run oracle or noop")
    out.mkdir(parents=True)
    trials, complaints = [], []
    for place, digest in places.items():
        try:
            trials += _export_place(run, place, digest, out)
        except (EvidenceError, OSError) as error:
            complaints.append(f"{place}: {error}")
    _write(out / "config.json", job_config(trials, out))
    _write(out / RESULT, job_result(trials, out.name))
    print(f"{len(trials)} trials in {out}: see them with `harbor view {out.parent}`")
    for complaint in complaints[:_MAX_COMPLAINTS]:
        print(f"not exported: {complaint}", file=sys.stderr)
    if len(complaints) > _MAX_COMPLAINTS:
        print(f"and {len(complaints) - _MAX_COMPLAINTS} more", file=sys.stderr)
    return 1 if complaints else 0


def _places(run: Path) -> dict[str, str]:
    """Return the places of the latest trials in the order of the ledger, each with its task's digest."""
    trials = (line for line in read_ledger(run) if line["kind"] == "trial" and line["evidence"])
    latest = {line["id"]: (line["evidence"], line["task_digest"]) for line in trials}
    return dict(latest.values())


def _export_place(run: Path, place: str, digest: str, out: Path) -> list[dict[str, Any]]:
    """Write the trials of one entry; it has two where oracle was repeated in another scope."""
    work = out / ".entry"
    try:
        extract(run, place, work)
        return [_export_trial(folder, digest, out) for folder in _trial_folders(work)]
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _trial_folders(work: Path) -> list[Path]:
    """Return the folders of trials, inner ones first. A task may have written a result.json of its own."""
    found = [path.parent for path in work.rglob(RESULT) if _OF_THE_TASK.isdisjoint(path.relative_to(work).parts)]
    return sorted(found, key=lambda path: len(path.parts), reverse=True)


def _export_trial(folder: Path, digest: str, out: Path) -> dict[str, Any]:
    result = _read_result(folder / RESULT)
    target = out / result["trial_name"]
    if target.exists():
        raise EvidenceError(f"a second trial has the name {target.name}")
    result["trial_uri"] = target.absolute().as_uri()
    result["task_checksum"] = digest.removeprefix("sha256:")
    result["config"] |= {"trials_dir": str(out.absolute()), "job_id": _job_id(out.name)}
    _write(folder / RESULT, result)
    _write(folder / "config.json", result["config"])
    exceptions = [error["exception_message"] for error in _exceptions(result)]
    if exceptions:
        (folder / "exception.txt").write_text("\n".join(exceptions) + "\n", encoding="utf-8", errors="replace")
    for step in [folder, *folder.glob("steps/*")]:
        for text in _SHOWN_TEXTS:
            _make_utf8(step / text)
    folder.rename(target)
    return result


def _read_result(path: Path) -> dict[str, Any]:
    text = path.read_bytes()
    try:
        _Trial.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise EvidenceError(f"{path.name} is no trial's: {where + ': ' if where else ''}{first['msg']}") from None
    result: dict[str, Any] = json.loads(text, parse_constant=_refuse)
    return result


def _refuse(constant: str) -> None:
    raise EvidenceError(f"{RESULT} is no JSON: {constant}")


def _make_utf8(path: Path) -> None:
    if path.is_file():
        path.write_text(path.read_bytes().decode(errors="replace"), encoding="utf-8")


def _exceptions(result: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found = [result["exception_info"], *(step["exception_info"] for step in result["step_results"] or ())]
    return [error for error in found if error is not None]


def _job_id(name: str) -> str:
    return str(uuid.uuid5(_NAMESPACE, name))


def job_config(trials: Sequence[Mapping[str, Any]], out: Path) -> dict[str, Any]:
    """Return the config.json of a job (Harbor's model ``JobConfig``) in the folder ``out`` with these trials."""
    return {
        "job_name": out.name,
        "jobs_dir": str(out.absolute().parent),
        "agents": [{"name": name} for name in sorted({trial["agent_info"]["name"] for trial in trials})],
        "environment": {"type": "singularity"},
        "datasets": [{"path": f"datasets/{name}"} for name in sorted({trial["source"] for trial in trials})],
    }


def job_result(trials: Sequence[Mapping[str, Any]], name: str) -> dict[str, Any]:
    """Return the result.json of a job (Harbor's model ``JobResult``) with these trials."""
    failed = sum(1 for trial in trials if _exceptions(trial))
    ended = max((trial["finished_at"] for trial in trials), default="1970-01-01T00:00:00+00:00")
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for trial in trials:
        groups.setdefault(f"{trial['agent_info']['name']}__{trial['source']}", []).append(trial)
    return {
        "schema_version": 1,
        "id": _job_id(name),
        "started_at": min((trial["started_at"] for trial in trials), default=ended),
        "updated_at": ended,
        "finished_at": ended,
        "n_total_trials": len(trials),
        "stats": {
            "n_completed_trials": len(trials),
            "n_errored_trials": failed,
            "n_running_trials": 0,
            "n_pending_trials": 0,
            "n_cancelled_trials": 0,
            "n_retries": 0,
            "evals": {key: _evaluation(group) for key, group in sorted(groups.items())},
        },
    }


def _evaluation(trials: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the statistics of one agent on one dataset. As in Harbor a trial without a reward counts as 0."""
    rewards: dict[str, dict[str, list[str]]] = {}
    exceptions: dict[str, list[str]] = {}
    sums: dict[str, float] = {}
    for trial in trials:
        for key, value in _rewards(trial):
            rewards.setdefault(key, {}).setdefault(str(value), []).append(trial["trial_name"])
            sums[key] = sums.get(key, 0.0) + value
        for kind in sorted({error["exception_type"] for error in _exceptions(trial)}):
            exceptions.setdefault(kind, []).append(trial["trial_name"])
    return {
        "n_trials": sum(1 for trial in trials if trial["reward_valid"]),
        "n_errors": sum(1 for trial in trials if _exceptions(trial)),
        "metrics": [_means(sums, len(trials))],
        "pass_at_k": {},
        "reward_stats": rewards,
        "exception_stats": exceptions,
    }


def _means(sums: Mapping[str, float], count: int) -> dict[str, float]:
    """Harbor's metric ``mean``: it has its own name where there is one reward at most."""
    if len(sums) <= 1:
        return {"mean": sum(sums.values()) / count}
    return {key: sums[key] / count for key in sorted(sums)}


def _rewards(trial: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    if trial["reward_valid"]:
        yield from trial["verifier_result"]["rewards"].items()


def _write(path: Path, values: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(values, indent=2, allow_nan=False) + "\n", encoding="utf-8")
