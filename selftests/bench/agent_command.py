"""What a command of an agent costs beyond the command itself.

    python -m selftests.bench.agent_command [ROUNDS] [--profile]

Alternates in one container: ``true`` by ``Container.run`` as any command of a trial, and by the agents' shell, which
adds a time limit of its own, and the shell of the agent. Prints medians and 90th percentiles; the goal is 20 ms beyond
``bash -c true``, which is measured inside. ``--profile`` shows where our own time goes.
"""

import cProfile
import pstats
import statistics
import sys
import tempfile
import time
from pathlib import Path

from pytest_otval.llm.shell import Shell
from pytest_otval.profile import load_profile
from pytest_otval.sandbox.base import Command, ContainerSpec
from pytest_otval.settings import RunSettings, Settings, VerdictSettings
from pytest_otval.stages.machine import Machine, own_extensions, probe_flavour
from pytest_otval.trial.agents.base import AgentPlace
from pytest_otval.workspace import Workspace

ENV = {"PATH": "/usr/bin:/bin"}
_INSIDE = """
begin=$(date +%s%N); for i in $(seq 200); do bash -c true; done; echo $((($(date +%s%N) - begin) / 200))
"""


def main(rounds: int, profiled: bool) -> None:
    workspace = Workspace.from_environment()
    profile = load_profile("local", Path(__file__).parents[2])
    flavour, _ = probe_flavour(workspace, profile)
    with tempfile.TemporaryDirectory() as out:
        log = Path(out, "log")
        settings = Settings(RunSettings(Path(out)), VerdictSettings(flavour=flavour))
        machine = Machine(settings, workspace, profile, own_extensions())
        image = machine.images.ensure_recipe("bookworm")
        overlay = machine.scratch.new("bench") / "overlay"
        with machine.sandbox.open(ContainerSpec(image.files, overlay)) as container:
            place = AgentPlace(container.run, ENV, None, "/", None, log, lambda: None, {})
            shell = Shell(place)
            inside = int(shell.run(_INSIDE, 120).output) / 1e6
            plain, agents = [], []
            profiler = cProfile.Profile()
            for _ in range(rounds):
                began = time.perf_counter()
                container.run(Command(["/bin/true"], log, ENV, seconds=60.0))
                plain.append((time.perf_counter() - began) * 1000)
                began = time.perf_counter()
                if profiled:
                    profiler.enable()
                shell.run("true", 60.0)
                profiler.disable()
                agents.append((time.perf_counter() - began) * 1000)
        machine.sandbox.remove(overlay.parent)
        machine.close()
    print(f"flavour {flavour}, {rounds} rounds, milliseconds")
    print(f"bash -c true, inside   {inside:6.1f}")
    for name, values in (("Container.run", plain), ("agents' shell", agents)):
        high = statistics.quantiles(values, n=10)[-1]
        middle = statistics.median(values)
        print(f"{name:22} {middle:6.1f}   90 %: {high:.1f}   beyond: {middle - inside:.1f}")
    if profiled:
        pstats.Stats(profiler).sort_stats("tottime").print_stats(18)


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:] if word.isdecimal()]
    main(numbers[0] if numbers else 200, "--profile" in sys.argv)
