"""Reads cases of ours from stdin, has the real Harbor read them, and prints them with what it read.

Run it with a Python >= 3.12 that has harbor==0.26.0 (see ``harbor_golden.py``), and only when what we write changes or
another version of Harbor is followed; ``selftests/trial/harbor_cases.py`` has the line.

In: ``{CASE: {"model": MODEL, "ours": CONTENT}}``, MODEL a name of ``MODELS``. Out: the same, each case with ``harbor``,
which is CONTENT as Harbor writes it again with all its defaults. Harbor refusing a case ends the script.
"""

from __future__ import annotations

import json
import sys
from importlib.metadata import version

from harbor.models.job.config import JobConfig
from harbor.models.job.result import JobResult
from harbor.models.trajectories import Trajectory
from harbor.models.trial.result import TrialResult

MODELS = {model.__name__: model for model in (JobConfig, JobResult, Trajectory, TrialResult)}

if __name__ == "__main__":
    cases = json.load(sys.stdin)
    for case in cases.values():
        read = MODELS[case["model"]].model_validate_json(json.dumps(case["ours"]))
        case["harbor"] = read.model_dump(mode="json")
    json.dump({"harbor": version("harbor"), "cases": cases}, sys.stdout, indent=1, sort_keys=True)
    print()
