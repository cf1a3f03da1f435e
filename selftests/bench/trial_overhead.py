"""What a trial costs beside the bare container starts in it.

    python selftests/bench/trial_overhead.py [ROUNDS]

Alternates, in one run: five bare ``apptainer exec`` of ``true`` (same image, overlay and network flags), then oracle
and noop of one trivial task through the stages. Prints the medians and their ratio; the goal is at most 1.5.
"""

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pytest_otval.profile import load_profile
from pytest_otval.sandbox.apptainer import FLAVOURS
from pytest_otval.settings import RunSettings, Settings, VerdictSettings
from pytest_otval.stages.machine import Machine, own_extensions, probe_flavour
from pytest_otval.stages.question import Question, agent_image
from pytest_otval.task.dataset import DatasetSettings
from pytest_otval.task.load import load_task
from pytest_otval.workspace import Workspace
from selftests.fakes import ask

TASK = Path(__file__).parents[2] / "datasets" / "demo" / "tasks" / "answer-file"


def bare_starts(flags: list[str], image: Path, scratch: Path) -> float:
    """Seconds of five starts, each over a new overlay folder."""
    total = 0.0
    for _ in range(5):
        overlay = Path(tempfile.mkdtemp(dir=scratch))
        argv = ["apptainer", "--silent", "exec", *flags, "--containall", "--cleanenv", "--no-mount", "home,tmp"]
        argv += ["--overlay", str(overlay), "--net", "--network", "none", str(image), "true"]
        began = time.monotonic()
        subprocess.run(argv, check=True, cwd="/")
        total += time.monotonic() - began
        shutil.rmtree(overlay, ignore_errors=True)
    return total


def main(rounds: int) -> None:
    workspace = Workspace.from_environment()
    profile = load_profile("local", Path(__file__).parents[2])
    flavour, _ = probe_flavour(workspace, profile)
    with tempfile.TemporaryDirectory() as out:
        settings = Settings(RunSettings(Path(out)), VerdictSettings(flavour=flavour))
        machine = Machine(settings, workspace, profile, own_extensions())
        task = load_task(TASK, "demo")
        image = machine.images.ensure(agent_image(task))
        flags = list(FLAVOURS[flavour].flags)
        bare, ours = [], []
        for number in range(rounds):
            bare.append(bare_starts(flags, image.files[0], machine.scratch.folder))
            total = 0.0
            for stage in ("oracle", "noop"):
                question = Question(task, DatasetSettings(), Path(out, f"{stage}-{number}"))
                result, _ = ask(stage, machine, question)
                assert result.reason == "expected", result
                total += result.facts["seconds"]["total"]
            ours.append(total)
        machine.close()
    first, second = statistics.median(bare), statistics.median(ours)
    ratios = sorted(one / other for one, other in zip(ours, bare, strict=True))
    print(f"flavour {flavour}, {rounds} rounds")
    print(f"five bare starts  {first:.3f} s")
    print(f"oracle + noop     {second:.3f} s")
    print(f"ratio of medians  {second / first:.2f} (rounds: {ratios[0]:.2f} to {ratios[-1]:.2f}), goal 1.50")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
