"""Reference tasks: one for each thing that a verifier may trust. All stand on one image, so that trials are quick.

Each pays for an answer of 42 and has 41 at the beginning. Verifiers take a moment at their end, as real ones do: that
is when a process that lived on writes.
"""

from pathlib import Path

from pytest_otval.task.load import Task, load_task
from selftests.fakes import TOML

DOCKERFILE = r"""FROM debian:bookworm
RUN apt-get update && apt-get install -y --no-install-recommends python3-pytest git
RUN python3 -m venv --system-site-packages --without-pip /opt/venv
WORKDIR /app
RUN mkdir tests && echo 41 > answer.txt && printf 'def answer():\n    return 41\n' > mod.py \
 && printf 'import sys\nsys.path.insert(0, "/app")\nfrom mod import answer\n\n' > tests/test_outputs.py \
 && printf 'def test_answer():\n    assert answer() == 42\n' >> tests/test_outputs.py \
 && git init -q && git add . && git -c user.name=x -c user.email=x@x commit -qm x
"""

TEST = (
    'import sys\nsys.path.insert(0, "/app")\nfrom mod import answer\n\ndef test_answer():\n    assert answer() == 42\n'
)
SOLVE = "echo 42 > /app/answer.txt; sed -i s/41/42/ /app/mod.py; echo 42 > /app/report.txt"
INSTRUCTION = (
    "Write 42 to `/app/answer.txt` and to the new file `/app/report.txt`, and let `answer` of /app/mod.py return it.\n"
)


def by_status(command: str) -> str:
    """A verifier that pays where a command ends with 0."""
    return f"cd /app; if {command}; then r=1; else r=0; fi; echo $r > /logs/verifier/reward.txt; sleep 0.3"


VERIFIERS = {
    "shell": by_status('test "$(cat answer.txt)" = 42'),
    "strict": 'set -e; r=$(python3 -c \'print(int(open("/app/answer.txt").read().strip() == "42"))\');'
    " echo $r > /logs/verifier/reward.txt",
    "expected": by_status("sleep 0.3 && cmp /tests/expected.txt answer.txt"),
    "exists": by_status("test -e report.txt"),
    "nonempty": by_status("test -s report.txt"),
    "content": by_status('test "$(cat report.txt)" = 42'),
    "clock": by_status(
        '{ began=$(date +%s%N); test "$(cat answer.txt)" = 42 || sleep 0.5; ended=$(date +%s%N);'
        " test $((ended - began)) -lt 250000000; }"
    ),
    "pytest": by_status("pytest /tests/test_outputs.py"),
    "module": by_status("python3 -m pytest /tests/test_outputs.py"),
    "copied": by_status("cp /tests/test_outputs.py tests && python3 -m pytest tests"),
    "login": by_status("bash -lc 'pytest /tests/test_outputs.py'"),
    "interactive": by_status("bash -ic 'pytest /tests/test_outputs.py'"),
    "activate": by_status(". /opt/venv/bin/activate && pytest /tests/test_outputs.py"),
    "environment": by_status("/opt/venv/bin/python3 -m pytest /tests/test_outputs.py"),
    "uvx": by_status("$(command -v uvx) pytest /tests/test_outputs.py"),
    "curl": by_status("{ curl -LsSf https://example.org/install.sh | sh; pytest /tests/test_outputs.py; }"),
    "noconftest": by_status("git checkout -q HEAD -- tests && python3 -m pytest --noconftest tests"),
    "git": by_status("git checkout -q HEAD -- tests && python3 -m pytest tests"),
    "report": by_status(
        "{ python3 -m pytest --junitxml /tmp/r.xml /tests/test_outputs.py; "
        'grep -q \'tests="1"\' /tmp/r.xml && grep -q \'errors="0" failures="0"\' /tmp/r.xml; }'
    ),
    "log": by_status(
        "{ python3 -m pytest -rA /tests/test_outputs.py > /tmp/log; grep -q '^PASSED .*::test_answer' /tmp/log; }"
    ),
}

NEAR_MISSES = {
    "empty-files": "content",
    "inputs-copied": "content",
    "date-shadowed": "shell",
    "git-conftest": "noconftest",
    "skip-import": "pytest",
    "tools-shadowed": "pytest",
    "activate": "environment",
}
"""Reference tasks that do not pay, even at isolation ``none``, for what looks as if it should be paid."""


def reference_task(folder: Path, name: str, instruction: str = INSTRUCTION) -> Task:
    """Write the reference task of a name below ``folder`` and load it."""
    path = folder / "reference" / "tasks" / name
    texts = {
        "environment/Dockerfile": DOCKERFILE,
        "instruction.md": instruction,
        "solution/solve.sh": f"#!/bin/bash\n{SOLVE}\n",
        "tests/test.sh": f"#!/bin/bash\n{VERIFIERS[name]}\n",
        "tests/test_outputs.py": TEST,
        "tests/expected.txt": "42\n",
        "task.toml": TOML,
    }
    for file, text in texts.items():
        (path / file).parent.mkdir(parents=True, exist_ok=True)
        (path / file).write_text(text)
    return load_task(path, "reference")
