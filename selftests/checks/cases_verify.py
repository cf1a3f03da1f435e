"""Faults and near misses of what a verifier believes and what it fetches."""

from __future__ import annotations

from pytest_otval.core import Severity
from selftests.checks.test_check_cases import BY_STATUS, RUN, TOML, Fault, script

W, INFO = Severity.WARNING, Severity.INFO
TEST = "tests/test.sh"
OFFLINE = {"task.toml": TOML + '[environment]\nnetwork_mode = "no-network"\n'}
SEPARATE = {
    "task.toml": TOML + 'environment_mode = "separate"\nartifacts = ["/app"]\n',
    "tests/Dockerfile": "FROM debian\nCOPY . /tests\n",
}
GRADER = {
    "environment/Dockerfile": "FROM debian:bookworm-slim\nWORKDIR /app\nCOPY grade.py /app/\n",
    "environment/grade.py": "raise SystemExit(0)\n",
}
PYTHON = "tests/test_more.py"


def run(*lines: str) -> dict[str, object]:
    return script(*lines, BY_STATUS)


FAULTS = [
    Fault("ver-runs-outside-tests", run("python3 /app/grade.py") | GRADER, TEST, 2, W, "runs /app/grade.py"),
    Fault("ver-runs-outside-tests", run("cd /app", "timeout 9 python3 grade.py") | GRADER, TEST, 3, W),
    Fault("ver-runs-outside-tests", run("D=/app", 'python3 "$D"/grade.py') | GRADER, TEST, 3, W),
    Fault("ver-runs-outside-tests", run("bash -c 'cd /app && ./grade.py'") | GRADER, TEST, 2, W),
    Fault("ver-runs-outside-tests", run(". /app/lib.sh", RUN), TEST, 2, W, "sources /app/lib.sh"),
    Fault("ver-runs-outside-tests", run("source /opt/venv/bin/activate", RUN), TEST, 2, INFO),
    Fault("ver-runs-outside-tests", run("pytest /app/tests/test_it.py"), TEST, 2, W, "runs the tests in"),
    Fault(
        "ver-runs-outside-tests",
        run("bash /tests/more.sh", RUN) | {"tests/more.sh": "#!/bin/bash\n/app/verify.sh\n"},
        "tests/more.sh",
        2,
        W,
    ),
    Fault("ver-trusts-agent-file", script("cp /app/reward.txt /logs/verifier/reward.txt"), TEST, 2, W),
    Fault("ver-trusts-agent-file", run("sha256sum -c /app/sums.txt"), TEST, 2, W),
    Fault("ver-pytest-isolation", run("cd /app", "python3 -m pytest /tests/test_outputs.py"), TEST, 3, INFO, "modules"),
    Fault(
        "ver-pytest-isolation",
        run("cp /tests/test_outputs.py /app/test_outputs.py", "pytest /app/test_outputs.py"),
        TEST,
        3,
        INFO,
        "conftest.py",
    ),
    Fault("ver-solution-place", run("cp /solution/fix.patch /tmp/fix.patch", RUN), TEST, 2, W, "/solution/fix.patch"),
    Fault(
        "ver-solution-place",
        {PYTHON: 'from pathlib import Path\n\n\ndef test_it():\n    assert Path("/solution/result.txt").exists()\n'},
        PYTHON,
        5,
        W,
    ),
    Fault(
        "network-at-verify",
        run("apt-get update", "curl -LsSf https://astral.sh/uv/install.sh | sh", RUN) | OFFLINE,
        TEST,
        3,
        says="has no network",
    ),
    Fault("network-at-verify", run("pip install pytest==8.4.1 || true", RUN) | OFFLINE, TEST, 2, W, "no network"),
    Fault("network-at-verify", run("if ! curl https://example.org; then exit 1; fi") | OFFLINE, TEST, 2, W),
    Fault("network-at-verify", run("git clone https://example.org/a.git /tmp/a", RUN), TEST, 2, W, "git clone"),
    Fault("network-at-verify", run("uvx --with pytest==8.4.1 pytest /tests/test_outputs.py"), TEST, 2, W),
    Fault("network-at-verify", run("npm ci", RUN), TEST, 2, W),
    Fault(
        "network-at-verify",
        {PYTHON: 'import urllib.request\n\n\ndef test_it():\n    urllib.request.urlopen("https://example.org")\n'},
        PYTHON,
        5,
        W,
    ),
    Fault(
        "network-at-verify",
        {PYTHON: 'import subprocess\n\n\ndef test_it():\n    subprocess.run(["pip", "install", "x"], check=True)\n'},
        PYTHON,
        5,
        W,
        "pip install x",
    ),
    Fault("network-unpinned", run("pip install pytest pyyaml==6.0", RUN), TEST, 2, W, "the newest pytest"),
    Fault("network-unpinned", run("uvx --with boto3 --from kit==1.0 kit /tests"), TEST, 2, W, "the newest boto3"),
    Fault("network-unpinned", run('"$OT_PYTHON" -m pip install pytest'), TEST, 2, W, "the newest pytest"),
    Fault("ver-runs-outside-tests", run('"$OT_PYTHON" -I /app/grade.py') | GRADER, TEST, 2, W, "runs /app/grade.py"),
    Fault(
        "reward-lost-on-failure",
        script("set -e", '"$OT_PYTHON" -I -m pytest /tests', "echo 1 > /logs/verifier/reward.txt"),
        TEST,
        3,
    ),
    Fault(
        "reward-lost-on-failure",
        script("set -e", '"${OT_PYTHON:-python3}" -I -m pytest /tests', "echo 1 > /logs/verifier/reward.txt"),
        TEST,
        3,
    ),
    Fault("network-unpinned", run("npx -y jest@latest"), TEST, 2, W),
]

NEAR_MISSES = [
    ("ver-runs-outside-tests", run("cp /tests/grade.py /app/grade.py", "python3 /app/grade.py") | GRADER),
    ("ver-runs-outside-tests", run("cp -r /tests/. /app", "cd /app", "bash run_tests.sh")),
    ("ver-runs-outside-tests", run("cat > /app/check.sh <<'EOF'", "true", "EOF", "bash /app/check.sh", RUN)),
    ("ver-runs-outside-tests", run("python3 /app/check.py > /tmp/out") | {"instruction.md": "Write /app/check.py.\n"}),
    ("ver-runs-outside-tests", run("python3 /app/main.py | diff - /tests/expected.txt")),
    ("ver-runs-outside-tests", run("cd /app", "make", "./build/unit_tests")),
    ("ver-runs-outside-tests", run("curl -LsSf https://astral.sh/uv/install.sh | sh", ". $HOME/.local/bin/env")),
    ("ver-runs-outside-tests", run('source "$(dirname "$0")/lib.sh"', RUN) | {"tests/lib.sh": "true\n"}),
    ("ver-runs-outside-tests", run("python3 /app/grade.py") | GRADER | SEPARATE),
    ("ver-runs-outside-tests", run("pytest --version", RUN)),
    ("ver-runs-outside-tests", run("python3 -I -m pytest /tests/test_outputs.py")),
    ("ver-runs-outside-tests", run("python3 -O -I /tests/test_outputs.py")),
    ("ver-trusts-agent-file", script(RUN, "cp /tmp/reward.txt /logs/verifier/reward.txt")),
    ("ver-trusts-agent-file", run("cd /app && sha256sum -c /tests/sums.txt")),
    ("ver-pytest-isolation", run("cd /app", "pytest /tests/test_outputs.py")),
    ("ver-pytest-isolation", run("cd /tests", "python3 -m pytest /tests/test_outputs.py")),
    ("ver-pytest-isolation", run("cp /tests/test_a.py /app/test_a.py", "pytest --noconftest /app/test_a.py")),
    ("ver-solution-place", run("cp /app/solution/fix.patch /tmp/fix.patch", RUN, "echo see /solution")),
    (
        "ver-solution-place",
        {PYTHON: '"""Not /solution."""\nfrom solution import main\nassert main("/app/solution/x")\n'},
    ),
    ("network-at-verify", run("curl http://server:8000/health", "curl http://127.0.0.1/", "wget http://10.0.0.2/")),
    ("network-at-verify", run("npx jest", "cargo test", "mvn -o test", "go test ./...", "uv pip install --offline x")),
    ("network-at-verify", run("export PIP_NO_INDEX=1", "pip install pytest", RUN)),
    ("network-at-verify", {"tests/unused.sh": "#!/bin/bash\ncurl https://example.org\n"}),
    (
        "network-at-verify",
        {PYTHON: 'import requests\n\n\ndef test_it(monkeypatch):\n    requests.get("https://example.org")\n'},
    ),
    ("reward-lost-on-failure", run('"$OT_PYTHON" -I -m pytest /tests')),
    ("network-unpinned", run("pip install pytest==8.4.1 'a>=1' /tests/b.whl", "apt-get install -y curl")),
    ("network-unpinned", run("uvx -p 3.12 --with pytest==8.4.1 pytest /tests", "npx jest", "npm ci")),
]
