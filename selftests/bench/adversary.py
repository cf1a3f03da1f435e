"""What a union of attacks costs beside doing nothing, on one task of the battery's references.

    PYTHONPATH=. python selftests/bench/adversary.py [ROUNDS] [TASK ...]

Alternates, in one run: a noop trial, and a trial of each union of the battery, at the default isolation. Prints
medians, their ratios (the goal is at most 2), and the phases of both.
"""

import statistics
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from pytest_otval.attacks import names
from pytest_otval.attacks.battery import battery
from pytest_otval.attacks.union import agent_of, unions
from pytest_otval.profile import load_profile
from pytest_otval.settings import RunSettings, Settings, VerdictSettings
from pytest_otval.stages.machine import Machine, own_extensions, probe_flavour
from pytest_otval.stages.question import Question
from pytest_otval.stages.trials import noop, trial_stage
from pytest_otval.task.dataset import DatasetSettings
from pytest_otval.workspace import Workspace
from selftests.attacks.reference import reference_task


def main(rounds: int, tasks: list[str]) -> None:
    workspace = Workspace.from_environment()
    profile = load_profile("local", Path(__file__).parents[2])
    flavour, _ = probe_flavour(workspace, profile)
    groups = {name: group for name, group in unions(battery().values()).items() if len(group) > 1}
    with tempfile.TemporaryDirectory() as out:
        settings = Settings(RunSettings(Path(out)), VerdictSettings(flavour=flavour))
        machine = Machine(settings, workspace, profile, own_extensions())
        for name in tasks:
            task = reference_task(Path(out), name)
            product, paths = names.modules(task.steps), names.paths(task.steps)
            agents = {name: agent_of(name, group, product, paths) for name, group in groups.items()}
            seconds = defaultdict(list)
            phases = defaultdict(lambda: defaultdict(list))
            for number in range(rounds + 1):
                for kind in ("noop", *agents):
                    question = Question(task, DatasetSettings(), Path(out, f"{name}-{kind}-{number}"))
                    result = (
                        noop(machine, question)
                        if kind == "noop"
                        else trial_stage(machine, question, agents[kind], "phase")
                    )
                    if number:  # the first brings the image into memory
                        seconds[kind].append(result.facts["seconds"]["total"])
                        for phase, value in result.facts["seconds"].items():
                            phases[kind][phase].append(value)
            base = statistics.median(seconds["noop"])
            for kind, found in seconds.items():
                middle = statistics.median(found)
                told = ", ".join(f"{phase} {statistics.median(values):.2f}" for phase, values in phases[kind].items())
                print(f"{name:8} {kind:14} {middle:6.2f} s  {middle / base:4.2f} x noop  ({told})", flush=True)
        machine.close()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5, sys.argv[2:] or ["shell", "pytest"])
