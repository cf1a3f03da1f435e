"""Where the cores of a node go while many models make attempts at once, at a server that answers at once.

    python -m selftests.bench.many_attempts [ATTEMPTS] [COMMANDS]

Runs ``pytest -n ATTEMPTS`` once, so that all attempts run beside each other: each gives so many commands, one an
answer, and is verified. Prints the wall time, seconds of CPU by kind of process, and both for each command.
"""

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import psutil

from pytest_otval.ledger import read_ledger
from selftests.fakes import TOML, make_task
from selftests.llm.server import Running

REPOSITORY = Path(__file__).parents[2]
COMMAND = "echo 1 >/answer"
TEST = "cp /answer /logs/verifier/reward.txt"


def kind_of(process: psutil.Process, server: int, controller: int) -> str:
    if process.pid in (server, controller):
        return "server" if process.pid == server else "controller"
    return "workers" if "python" in process.name() or process.name().startswith("pytest") else "containers"


def watch(controller: int, server: int, used: dict[tuple[int, float], tuple[str, float]]) -> None:
    """Note what each process used so far, until the controller ends."""
    with suppress(psutil.NoSuchProcess):
        top = psutil.Process(controller)
        while top.is_running() and top.status() != psutil.STATUS_ZOMBIE:
            for process in (psutil.Process(server), top, *top.children(recursive=True)):
                with suppress(psutil.Error):
                    times = process.cpu_times()
                    # A container's short processes are dead before anybody looks: their parents know.
                    seconds = times.user + times.system + times.children_user + times.children_system
                    kind = kind_of(process, server, controller)
                    if kind in ("workers", "controller"):
                        seconds = times.user + times.system
                    used[process.pid, process.create_time()] = (kind, seconds)
            time.sleep(0.5)


def main(attempts: int, commands: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        make_task(root, test=TEST, toml=TOML.replace("30.0", "600.0"), files={"instruction.md": "write the answer\n"})
        profile = (REPOSITORY / "clusters" / "local.toml").read_text()
        (root / "clusters").mkdir()
        per_core = -(-attempts // (os.cpu_count() or 1))
        (root / "clusters" / "here.toml").write_text(
            profile.replace("[budget]\n", f"[budget]\nattempts_per_core = {per_core}\n")
        )
        (root / "pytest.ini").touch()
        policies = root / "policies.toml"
        policies.write_text(f"[[tasks]]\ninstruction = 'the answer'\ncommands = {[COMMAND] * commands!r}\n")
        with Running(policies) as server:
            argv = [sys.executable, "-m", "pytest", "set", "-q", "-m", "teacher", "--otval-teacher=solves"]
            argv += [f"--otval-k={attempts}", f"-n{attempts}", f"--otval-base-url={server.url}", "--otval-agent=tools"]
            argv += ["--otval-cluster=here", f"--otval-out={root / 'out'}", "-p", "no:cacheprovider"]
            began = time.monotonic()
            run = subprocess.Popen(argv, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            used: dict[tuple[int, float], tuple[str, float]] = {}
            watcher = threading.Thread(target=watch, args=(run.pid, server.process.pid, used))
            watcher.start()
            text, _ = run.communicate()
            wall = time.monotonic() - began
            watcher.join()
        lines = [line for line in read_ledger(root / "out") if line["kind"] == "result"]
        assert [line["class"] for line in lines] == ["expected"] * attempts, text
    sums: Counter[str] = Counter()
    for kind, seconds in used.values():
        sums[kind] += seconds
    count = attempts * commands
    agents = sum(line["seconds"]["agent"] for line in lines) / attempts
    print(f"{attempts} attempts at once of {commands} commands, {os.cpu_count()} cores: {wall:.0f} s")
    print(f"an attempt's agent phase: {agents:.1f} s; {count / wall:.1f} commands/s in all")
    for kind, seconds in sums.most_common():
        print(f"{kind:11} {seconds:7.1f} s of CPU, {seconds / count * 1000:6.1f} ms a command")


if __name__ == "__main__":
    chosen = [int(word) for word in sys.argv[1:]]
    main(*(chosen + [64, 20][len(chosen) :]))
