"""Faults and near misses of tasks with several steps, and of separate verifiers."""

from __future__ import annotations

from pytest_otval.core import Severity
from selftests.checks.test_check_cases import BY_STATUS, Fault

W, INFO = Severity.WARNING, Severity.INFO
HEAD = '[agent]\ntimeout_sec = 60\n[verifier]\ntimeout_sec = 60\nenvironment_mode = "separate"\n'
ANSWER = 'artifacts = ["/app/answer.txt"]\n'
STEPS = '[agent]\ntimeout_sec = 60\n[[steps]]\nname = "one"\n'
RUNS = "#!/bin/bash\npytest /tests/test_outputs.py\n" + BY_STATUS


def separate(*lines: str, artifacts: str = ANSWER) -> dict[str, object]:
    image = "FROM debian:bookworm-slim\n" + "".join(f"{line}\n" for line in lines)
    return {"task.toml": artifacts + HEAD, "tests/Dockerfile": image, "tests/test.sh": RUNS}


READS = 'import json\n\ndef test_a():\n    assert json.load(open("/app/more.json"))["a"] == 1\n'
GUARDED = (
    "import os\nfrom pathlib import Path\n\n\ndef test_a():\n"
    '    assert not Path("/app/gone.txt").exists()\n'
    '    if os.path.exists("/app/extra.txt"):\n        assert open("/app/extra.txt").read()\n'
    '    Path("/app/made.txt").write_text("x")\n    assert Path("/app/made.txt").read_text()\n'
    '    assert open("/etc/hostname").read()\n    assert open("/logs/artifacts/a.txt").read()\n'
)

FAULTS = [
    Fault(
        "steps-unlisted",
        {"task.toml": STEPS, "steps/one/instruction.md": "Write 42 to /app/a.\n", "steps/two/instruction.md": "More."},
        "steps/two",
        None,
        W,
    ),
    Fault("steps-unlisted", {"steps/one/instruction.md": "Write 42 to /app/a.\n"}, "steps/one", None, W),
    Fault(
        "steps-root-instruction",
        {"task.toml": STEPS, "steps/one/instruction.md": "Write 42 to /app/a.\n"},
        "instruction.md",
        None,
        INFO,
    ),
    Fault("separate-no-tests", separate("COPY test_outputs.py /tests/"), "tests/Dockerfile"),
    Fault("separate-no-tests", separate("WORKDIR /verifier", "COPY . ."), "tests/Dockerfile"),
    Fault(
        "separate-test-file-missing",
        separate("COPY test.sh /tests/test.sh"),
        "tests/test.sh",
        2,
        W,
        "/tests/test_outputs.py",
    ),
    Fault(
        "separate-path-missing",
        {**separate("COPY . /tests/"), "tests/test_outputs.py": READS},
        "tests/test_outputs.py",
        4,
        W,
        "/app/more.json",
    ),
    Fault(
        "separate-path-missing",
        {
            **separate("COPY . /tests/"),
            "tests/test.sh": RUNS + "python3 - <<'PY'\nimport sys\nsys.exit(open('/app/more.txt').read() != '1')\nPY\n",
        },
        "tests/test.sh",
        10,
        W,
    ),
    Fault("separate-nothing-carried", separate("COPY . /tests/", artifacts=""), "task.toml", 3, W),
]

NEAR_MISSES: list[tuple[str, dict[str, object]]] = [
    ("steps-unlisted", {"task.toml": STEPS, "steps/one/instruction.md": "a 1", "steps/README.md": "how"}),
    (
        "steps-root-instruction",
        {"task.toml": STEPS, "steps/one/instruction.md": "Write 42 to /app/a.\n", "instruction.md": None},
    ),
    ("separate-no-tests", separate("WORKDIR /tests", "COPY . .")),
    ("separate-no-tests", separate("COPY test.sh test_outputs.py /tests/")),
    ("separate-no-tests", {**separate("USER root"), "tests/Dockerfile": "FROM registry.example.org/verifier:1\n"}),
    ("separate-no-tests", separate("RUN git clone https://example.org/t /tests")),
    ("separate-no-tests", {"task.toml": ANSWER + HEAD}),
    ("separate-test-file-missing", separate("COPY *.sh *.py /tests/")),
    ("separate-path-missing", {**separate("COPY . /tests/"), "tests/test_outputs.py": GUARDED}),
    (
        "separate-path-missing",
        {
            **separate("COPY . /tests/", "COPY more.json /app/"),
            "tests/test_outputs.py": READS,
            "tests/more.json": "{}",
        },
    ),
    (
        "separate-path-missing",
        {**separate("COPY . /tests/", artifacts='artifacts = ["/app"]\n'), "tests/test_outputs.py": READS},
    ),
    ("separate-nothing-carried", separate("COPY . /tests/")),
    (
        "separate-nothing-carried",
        {**separate("COPY . /tests/", artifacts=""), "instruction.md": "Write 42 to /logs/artifacts/answer.txt.\n"},
    ),
]
