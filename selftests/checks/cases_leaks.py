"""Faults and near misses of answers that the agent can reach."""

from __future__ import annotations

import base64

from pytest_otval.core import Severity
from selftests.checks.cases_docker import PATH, built
from selftests.checks.test_check_cases import SOLVE, TOML, Fault

E, W, INFO = Severity.ERROR, Severity.WARNING, Severity.INFO
BUG = "--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n def f(value):\n-    return value + 1\n+    return value - 1\n"
FIX = "--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n def f(value):\n-    return value - 1\n+    return value + 1\n"
APPLY = "RUN patch -p1 < /tmp/bug.patch"
CODE = base64.b64encode(SOLVE.encode()).decode()
TOKEN = "ghp_" + "kR7vQ2mX9tLb4WzN8cJf3HdY6sGp1AuE5oMi"
"""Of nobody: 36 letters made for this file."""

FAULTS = [
    Fault(
        "leaks-reverse-patch",
        {**built("COPY bug.patch /tmp/", APPLY), "environment/bug.patch": BUG, "solution/fix.patch": FIX},
        "environment/bug.patch",
        None,
        E,
        "/tmp/bug.patch",
    ),
    Fault("leaks-encoded", built(f"RUN echo {CODE} | base64 -d > /opt/x"), PATH, 2, E, "solution/solve.sh"),
    Fault(
        "leaks-encoded",
        {**built("COPY data /data/"), "environment/data/a.txt": f"#\n{CODE[:76]}\n{CODE[76:]}\n"},
        "environment/data/a.txt",
        2,
        E,
    ),
    Fault(
        "leaks-answer-file",
        {**built("COPY . /app/"), "environment/data/ground_truth.csv": "1\n"},
        "environment/data/ground_truth.csv",
        None,
        INFO,
        "/app/data/ground_truth.csv",
    ),
    Fault(
        "leaks-bytecode",
        {**built("COPY lib /app/lib/"), "environment/lib/__pycache__/grade.cpython-311.pyc": b"\xa7\r\r\n\0"},
        "environment/lib/__pycache__/grade.cpython-311.pyc",
        None,
        W,
        "grade.py",
    ),
    Fault(
        "leaks-reward-shipped",
        {**built("COPY r /logs/verifier/reward.txt"), "environment/r": "0"},
        "environment/r",
        None,
        W,
    ),
    Fault(
        "leaks-reward-shipped",
        built("RUN mkdir -p /logs/verifier && \\", "  echo 0 > /logs/verifier/reward.txt"),
        PATH,
        3,
        W,
    ),
    Fault("leaks-secret", built(f"ENV GITHUB_TOKEN={TOKEN}"), PATH, 2, W, "GitHub"),
    Fault("leaks-secret", {"task.toml": TOML + f'[environment.env]\nTOKEN = "{TOKEN}"\n'}, "task.toml", 7, W),
]

NEAR_MISSES: list[tuple[str, dict[str, object]]] = [
    (
        "leaks-reverse-patch",
        {
            **built("COPY bug.patch /tmp/", APPLY + " && rm /tmp/bug.patch"),
            "environment/bug.patch": BUG,
            "solution/fix.patch": FIX,
        },
    ),
    (
        "leaks-reverse-patch",
        {
            **built("COPY other.patch /tmp/", "RUN patch -p1 < /tmp/other.patch"),
            "environment/other.patch": BUG.replace("value", "number"),
            "solution/fix.patch": FIX,
        },
    ),
    ("leaks-encoded", built("RUN echo " + base64.b64encode(b"another text" * 9).decode() + " | base64 -d > /opt/x")),
    (
        "leaks-answer-file",
        {
            **built("COPY . /app/"),
            "environment/ground_truth.csv": "1\n",
            "environment/solution.md": "x",
            "instruction.md": "Compare your numbers with /app/ground_truth.csv.\n",
        },
    ),
    ("leaks-answer-file", {**built("COPY a /app/"), "environment/answer.txt": "42", "environment/a": ""}),
    (
        "leaks-bytecode",
        {
            **built("COPY lib /app/lib/"),
            "environment/lib/grade.py": "",
            "environment/lib/__pycache__/grade.cpython-311.pyc": b"\xa7\r\r\n\0",
        },
    ),
    ("leaks-reward-shipped", built("RUN mkdir -p /logs/verifier && echo see /logs/verifier/reward.txt > /README")),
    ("leaks-secret", built("ENV GITHUB_TOKEN=ghp_" + "x" * 36, "ENV AWS_KEY=AKIAIOSFODNN7EXAMPLE")),
    ("leaks-secret", {**built("COPY notes /app/"), "environment/notes": f"found in a dump: {TOKEN}\n"}),
]
