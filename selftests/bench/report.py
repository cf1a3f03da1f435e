"""What the reports of 20,000 results cost: `python selftests/bench/report.py [RESULTS]`.

Makes a ledger with texts of realistic length, runs `report` with all outputs as a process of its own, and prints its
seconds, its largest resident memory, and the sizes of what it wrote. Then the same results come out of pytest with
`--html`: a stub answers 20,000 items, and the sizes of its page and of our index are printed.
"""

from __future__ import annotations

import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from pytest_otval.core import REASONS, node_id
from pytest_otval.ledger import Ledger, Line, write_run

STAGES = ("static", "build", "oracle", "noop")
FAULTS = ("wrong-reward", "no-reward", "verifier-timeout", "build-failed", "image-failed", "network-unreachable")
SHARE_OF_FAULTS = 0.2
LOG_LINE = "tests/test_outputs.py:{}: AssertionError: assert {!r} == 'the expected content of the file'\n"
FINDING = {
    "check": "shell-unquoted-variable",
    "severity": "warning",
    "message": "the variable stands without quotes, so its value is split into words",
    "path": "tests/test.sh",
    "line": 12,
    "fix": "put it in quotes",
}


def main(results: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run = folder / "run"
        make_ledger(run, results)
        print(f"{results} results, ledger {megabytes(*(run / 'ledger').iterdir()):.1f} MB")
        report(run, folder)
        pytest_page(folder, results)


def make_ledger(run: Path, results: int) -> None:
    """Write a run of four writers."""
    dice = random.Random(0)
    write_run(run, {"args": ["datasets/bench"], "flavour": "fakeroot-subuid"})
    ledgers = [Ledger(run, f"gw{number}") for number in range(4)]
    for number in range(results):
        name = f"organisation-{number // 400}__repository-name-{number // 4:06}"
        line = result(name, STAGES[number % 4], dice)
        ledgers[number % 4].write(line)


def result(name: str, stage: str, dice: random.Random) -> Line:
    reason = dice.choice(FAULTS) if dice.random() < SHARE_OF_FAULTS else "expected"
    key = f"{dice.getrandbits(256):064x}"
    trial = stage in ("oracle", "noop")
    phases = ("setup", "agent", "hand_over", "verifier") if trial else ()
    log = "".join(LOG_LINE.format(dice.randrange(400), hex(dice.getrandbits(64))) for _ in range(25))
    return Line(
        kind="result",
        id=node_id("bench", name, stage),
        task_digest=f"sha256:{key}",
        stage=stage,
        attempt=0,
        verdict=str(REASONS[reason].verdict),
        reason=reason,
        settings_digest="91b3e7b2fdaf6632a699fa538317a5149201e466be1c63987b50ce2cf918ded4",
        flavour="fakeroot-subuid",
        network="task",
        headline="" if reason == "expected" else f"{stage} of {name} did not give the expected answer",
        log="" if reason == "expected" else log,
        score=dice.choice((0.0, 0.5, 1.0)) if trial else None,
        rewards={"reward": 0.5} if trial else None,
        image={"key": key, "content": key[::-1], "base": "bootstrap:bookworm@ec86f79bd94d"},
        checks=[FINDING] * dice.randrange(4) if stage == "static" else (),
        seconds={**{phase: dice.random() for phase in phases}, "total": dice.random() * 60},
        evidence=f"evidence/gw0.tar.gz@{dice.randrange(10**8)}+{dice.randrange(10**5)}" if trial else "",
        columns={"Difficulty": dice.choice(("easy", "medium", "hard"))},
    )


def report(run: Path, folder: Path) -> None:
    """Run the command with all of its outputs."""
    outputs = {"--html": folder / "pages", "--junit": folder / "junit.xml", "--json": folder / "results.json"}
    words = [sys.executable, "-m", "pytest_otval", "report", str(run)]
    words += [word for option, path in outputs.items() for word in (option, str(path))]
    began = time.perf_counter()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - began
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        f"report: {seconds:.1f} s, {used.ru_utime + used.ru_stime:.1f} s CPU, {used.ru_maxrss / 1024:.0f} MB (largest)"
    )
    pages = outputs["--html"]
    details = list((pages / "details").iterdir())
    print(f"index: {megabytes(*(path for path in pages.iterdir() if path.is_file())):.2f} MB")
    print(f"details: {len(details)} files, {megabytes(*details):.1f} MB, largest {max(map(megabytes, details)):.2f} MB")
    print(f"junit: {megabytes(outputs['--junit']):.1f} MB, json: {megabytes(outputs['--json']):.1f} MB")


def pytest_page(folder: Path, results: int) -> None:
    """Run pytest with a page over as many items that a stub answers."""
    project = folder / "project"
    for number in range(results // len(STAGES)):
        task = project / f"datasets/bench/tasks/organisation__repository-name-{number:06}"
        task.mkdir(parents=True)
        (task / "task.toml").write_text("[agent]\ntimeout_sec = 30.0\n[verifier]\ntimeout_sec = 30.0\n")
        (task / "wanted").mkdir()
        if number % 5 == 0:
            (task / "wanted/oracle").write_text("wrong-reward the solution got less than it should")
    (project / "datasets/bench/dataset.toml").write_text('[dataset]\nname = "org/bench"\n')
    (folder / "workspace").mkdir()
    stub = Path(__file__).parents[1] / "glue"
    words = [sys.executable, "-P", "-m", "pytest", "-p", "otval_stub", "-qq", "datasets/bench", "--html=report.html"]
    environment = {"OT_WORKSPACE": str(folder / "workspace"), "PYTHONPATH": str(stub), "PATH": "/usr/bin:/bin"}
    began = time.perf_counter()
    with (folder / "pytest.log").open("wb") as log:
        subprocess.run(words, cwd=project, env=environment, check=False, stdout=log)
    page, index = project / "report.html", project / "report-otval"
    sizes = megabytes(page), megabytes(*(path for path in index.iterdir() if path.is_file()))
    print(f"pytest --html: {time.perf_counter() - began:.0f} s, page {sizes[0]:.2f} MB, index {sizes[1]:.2f} MB")


def megabytes(*paths: Path) -> float:
    return sum(path.stat().st_size for path in paths) / 1e6


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)
