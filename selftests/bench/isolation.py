"""What a trial takes at each isolation level.

    PYTHONPATH=. python selftests/bench/isolation.py [ROUNDS]

Alternates, in one run, oracle trials of two tasks at each level: one whose solution writes a file, and one whose
solution also writes 400 files into the system, of which half are kept. The goal is at most 1.8 of `fresh` at `masked`.
"""

import statistics
import sys
import tempfile
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

from pytest_otval.profile import load_profile
from pytest_otval.settings import RunSettings, Settings, VerdictSettings
from pytest_otval.stages.machine import Machine, own_extensions, probe_flavour
from pytest_otval.stages.question import Question
from pytest_otval.task.dataset import DatasetSettings
from pytest_otval.workspace import Workspace
from selftests.fakes import TOML, ask, make_task

LEVELS = ("fresh", "masked", "pristine")
TEST = "grep -q 42 /work/answer && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt"
WRITES = "echo 42 > /work/answer"
CHANGES = f"""{WRITES}
mkdir -p /opt/tool && for n in $(seq 200); do echo $n > /opt/tool/$n; echo $n > /usr/local/$n; done
"""


def main(rounds: int) -> None:
    workspace = Workspace.from_environment()
    profile = load_profile("local", Path(__file__).parents[2])
    flavour, _ = probe_flavour(workspace, profile)
    with tempfile.TemporaryDirectory() as out:
        toml = TOML.replace("[environment]", '[environment]\nworkdir = "/work"')
        tasks = {
            "writes": make_task(Path(out, "writes"), WRITES, TEST, toml),
            "keeps": make_task(Path(out, "keeps"), CHANGES, TEST, toml + '[metadata.otval]\nkeep = ["/opt/tool"]\n'),
        }
        machine = Machine(
            Settings(RunSettings(Path(out)), VerdictSettings(flavour=flavour)), workspace, profile, own_extensions()
        )
        seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
        for number in range(rounds + 1):
            for name, task in tasks.items():
                for level in LEVELS:
                    question = Question(task, DatasetSettings(), Path(out, f"{name}-{level}-{number}"))
                    result, _ = ask("oracle", machine, replace(question, isolation=level))
                    assert result.reason == "expected", result
                    if number:  # the first brings the image into memory
                        seconds[name, level].append(result.facts["seconds"]["total"])
        machine.close()
    print(f"flavour {flavour}, {rounds} rounds")
    for (name, level), found in seconds.items():
        middle = statistics.median(found)
        print(f"{name:8} {level:9} {middle:.3f} s  {middle / statistics.median(seconds[name, 'fresh']):.2f} of fresh")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
