"""Faults and near misses of reference solutions."""

from __future__ import annotations

from pytest_otval.core import Severity
from selftests.checks.test_check_cases import TOML, Fault

W, INFO = Severity.WARNING, Severity.INFO
PATH = "solution/solve.sh"
OFFLINE = TOML + '[environment]\nnetwork_mode = "no-network"\n'
KEEPS = TOML + '[metadata.otval]\nprocess_scope = "trial"\n'


def solves(*lines: str) -> dict[str, object]:
    return {PATH: "#!/bin/bash\n" + "".join(f"{line}\n" for line in lines)}


FAULTS = [
    Fault(
        "solution-reads-tests",
        {**solves("# the key", "cp /tests/expected.txt /app/answer.txt"), "tests/expected.txt": "42\n"},
        PATH,
        3,
    ),
    Fault(
        "solution-reads-tests",
        {
            **solves("python3 - <<'EOF'", "gold = open('/tests/gold.json').read()", "open('/app/a', 'w')", "EOF"),
            "tests/gold.json": "{}",
        },
        PATH,
        3,
    ),
    Fault(
        "solution-reads-tests",
        {
            **solves("python3 /solution/solve.py"),
            "solution/solve.py": "import json\nprint(json.load(open('/tests/gold.json')))\n",
            "tests/gold.json": "{}",
        },
        "solution/solve.py",
        2,
    ),
    Fault(
        "solution-reads-tests",
        {
            **solves("cp /tests/expected.txt /app/answer.txt"),
            "tests/expected.txt": "42\n",
            "environment/Dockerfile": "FROM debian:bookworm-slim\nCOPY key /tests/\n",
            "environment/key": "",
        },
        PATH,
        2,
        W,
    ),
    Fault("solution-reads-tests", solves("cp /tests/none.txt /app/answer.txt"), PATH, 2, W),
    Fault("solution-writes-reward", solves("true", "echo 1 > /logs/verifier/reward.txt"), PATH, 3),
    Fault("solution-writes-reward", solves("cp /app/one /logs/verifier/reward.txt"), PATH, 2, W),
    Fault("solution-file-missing", solves("cd /app", "patch -p1 < /solution/fix.patch"), PATH, 3, says="fix.patch"),
    Fault("solution-file-missing", solves("cd /app && python3 /solution/lib/solve.py --fast"), PATH, 2),
    Fault("solution-file-missing", solves("cp -r /solution/files /app"), PATH, 2),
    Fault("solution-network", {**solves("curl -fsS https://example.org/a > /app/a"), "task.toml": OFFLINE}, PATH, 2),
    Fault(
        "solution-network",
        {**solves("cd /app", "pip install requests", "cp a b"), "task.toml": OFFLINE},
        PATH,
        3,
        W,
        "no network",
    ),
    Fault(
        "solution-network",
        {**solves("curl -fsS https://example.org/a > /app/a || cp /solution/a /app/a"), "task.toml": OFFLINE},
        PATH,
        2,
        W,
    ),
    Fault("solution-network", solves("cd /app", "npm install left-pad", "cp a b"), PATH, 3, INFO, "npm install"),
    Fault("solution-interactive", solves("vim /app/a.txt", "cp a b"), PATH, 2, W),
    Fault("solution-interactive", solves("apt-get update", "apt-get install jq", "cp a b"), PATH, 3, W, "install"),
    Fault("solution-broad-kill", solves("pkill -f python3", "cp a b"), PATH, 2, W),
    Fault("solution-broad-kill", solves("cp a b", "kill -9 -1"), PATH, 3, W),
    Fault("solution-background", solves("cd /app", "python3 server.py &"), PATH, 3, INFO, "python3 server.py"),
    Fault("solution-empty", solves("# Use this file to solve the task."), PATH),
    Fault("solution-empty", solves("set -e", "exit 0"), PATH),
    Fault("solution-empty", solves("echo done"), PATH, None, W),
    Fault("solution-answer-only", solves("mkdir -p /app", "echo 'flag{abc}' > /app/answer.txt"), PATH, 3, INFO),
    Fault("solution-answer-only", solves("cat > /app/answer.txt <<EOF", "flag", "EOF"), PATH, 2, INFO),
]

NEAR_MISSES: list[tuple[str, dict[str, object]]] = [
    (
        "solution-reads-tests",
        {
            **solves(
                "# not /tests/expected.txt",
                "cp /app/tests/expected.txt /app/a",
                "cp $HOME/tests/expected.txt /app/b",
                "echo see /tests/expected.txt",
                "[ ! -f /tests/expected.txt ] && cp c d",
            ),
            "tests/expected.txt": "42\n",
        },
    ),
    ("solution-writes-reward", solves("[ -d /logs/verifier ] && cp a b", "echo 1 > /app/reward.txt")),
    ("solution-file-missing", {**solves("patch -p1 < /solution/fix.patch"), "solution/fix.patch": "--- a\n"}),
    (
        "solution-file-missing",
        solves(
            "echo 'print(1)' > /solution/made.py",
            "python3 /solution/made.py",
            "[ -f /solution/maybe.sh ] && bash /solution/maybe.sh",
            "python3 /solution/$NAME.py",
            "cp /solution/*.txt /app/",
            "cat /app/solution/a.txt",
        ),
    ),
    ("solution-network", {**solves("curl http://localhost:8000/a > /app/a"), "task.toml": OFFLINE}),
    ("solution-network", {**solves("pip install --no-index /wheels/a.whl", "cp a b"), "task.toml": OFFLINE}),
    (
        "solution-interactive",
        solves(
            "vim -es -c '%s/a/b/' -c wq /app/a.txt",
            "apt-get install -y jq",
            "apt-get -qy install jq",
            "yes | apt install jq",
            "passwd app < /app/new",
            "top -b -n 1 > /app/top",
            "if false; then nano /app/a; fi",
            "read -r LINE < /app/a",
        ),
    ),
    ("solution-broad-kill", solves("pkill -f /app/server.py", "kill -9 $PID", "kill -1 $PID", "killall nginx")),
    ("solution-background", solves("python3 server.py &", "SERVER=$!", "cp a b", "kill $SERVER")),
    ("solution-background", solves("make a &", "make b &", "wait")),
    ("solution-background", {**solves("python3 server.py &"), "task.toml": KEEPS}),
    ("solution-empty", solves("set -e", "cp a b")),
    ("solution-empty", solves("> /app/answer.txt")),
    ("solution-empty", {PATH: "#!/usr/bin/env python3\nprint(1)\n"}),
    ("solution-answer-only", solves("mkdir -p /app", "echo 42 > /app/answer.txt")),
    ("solution-answer-only", solves("ANSWER=$(wc -l < /app/in)", "echo $ANSWER > /app/answer.txt")),
    ("solution-answer-only", solves("cat > /app/a.py <<EOF", "import os", "print(os.getcwd())", "EOF")),
    ("solution-answer-only", solves("gcc /app/a.c -o /app/a", "echo built > /app/state")),
]
