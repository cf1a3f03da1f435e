"""What a runtime costs a trial, and how long saving one takes.

    python selftests/bench/runtime_overhead.py [ROUNDS]

Alternates, in one run, oracle trials of a trivial task: without a runtime, with the agent's, with the verifier's, and
with both. The goal is at most 1.4 of the trial without. Then installs and saves a runtime of 50 MB; goal 15 s.
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path

from pytest_otval.profile import Profile, load_profile
from pytest_otval.runtimes.recipe import find_recipe
from pytest_otval.runtimes.record import TASK_JSON, VERIFIER_JSON, Reference, write_reference
from pytest_otval.runtimes.store import Runtimes
from pytest_otval.settings import RunSettings, Settings, VerdictSettings
from pytest_otval.stages.machine import Machine, own_extensions, probe_flavour
from pytest_otval.stages.question import Question, agent_image
from pytest_otval.stages.saving import by_recipe, save_runtimes
from pytest_otval.task.dataset import DatasetSettings
from pytest_otval.workspace import Workspace
from selftests.fakes import ask, make_task

TEST = "grep -q 42 /answer && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt"
KINDS = {"none": (), "agent's": ("agent",), "verifier's": ("verifier",), "both": ("agent", "verifier")}
MEGABYTES = 50
# Half of it does not compress, as in most packages.
SETUP = f"""#!/bin/bash
. ot-runtime.sh
ot_runtime big || {{
    for n in $(seq {MEGABYTES // 2}); do head -c 1000000 /dev/urandom > "$OT_RUNTIME/random-$n"; done
    for n in $(seq {MEGABYTES // 2}); do yes "line $n" | head -c 1000000 > "$OT_RUNTIME/text-$n"; done
    ot_runtime_save
}}
"""


def main(rounds: int) -> None:
    workspace = Workspace.from_environment()
    local = load_profile("local", Path(__file__).parents[2])
    profile = Profile.model_validate({**local.model_dump(), "image_sources": ("bootstrap",)})
    flavour, _ = probe_flavour(workspace, profile)
    with tempfile.TemporaryDirectory() as out:
        settings = Settings(RunSettings(Path(out)), VerdictSettings(flavour=flavour))
        machine = Machine(settings, workspace, profile, own_extensions())
        recipe = find_recipe("python-verifier")
        assert recipe is not None
        runtime = machine.installer.ensure(by_recipe(machine, recipe))
        tasks = {}
        for kind, phases in KINDS.items():
            task = make_task(Path(out, kind.strip("'")), "echo 42 > /answer", TEST, files={"setup_files/data": ""})
            for phase in phases:
                file = {"agent": f"setup_files/{TASK_JSON}", "verifier": f"tests/{VERIFIER_JSON}"}[phase]
                write_reference(task.path / file, Reference.of(runtime))
            tasks[kind] = task
        machine.images.ensure(agent_image(tasks["none"]))
        seconds: dict[str, list[float]] = {kind: [] for kind in KINDS}
        for number in range(rounds):
            for kind, task in tasks.items():
                result, _ = ask("oracle", machine, Question(task, DatasetSettings(), Path(out, f"{kind}-{number}")))
                assert result.reason == "expected", result
                seconds[kind].append(result.facts["seconds"]["total"])
        own = Machine(settings, workspace, profile, own_extensions())
        own.__dict__.update(scratch=machine.scratch, images=machine.images, runtimes=Runtimes(Path(out, "cache")))
        big = make_task(Path(out, "big"), files={"setup_files/setup.sh": SETUP})
        began = time.monotonic()
        save_runtimes(own, big)
        saving = time.monotonic() - began
        machine.close()
    without = statistics.median(seconds["none"])
    print(f"flavour {flavour}, {rounds} rounds, runtime of {runtime.bytes / 1e6:.0f} MB")
    for kind, found in seconds.items():
        median = statistics.median(found)
        print(f"{kind:12} {median:.3f} s  {median / without:.2f}")
    print(f"saving {MEGABYTES} MB: {saving:.1f} s, goal 15 s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
