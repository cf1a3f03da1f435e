"""Faults and near misses of what tests require and the instruction never says."""

from __future__ import annotations

from pytest_otval.core import Severity
from selftests.checks.test_check_cases import Fault

W = Severity.WARNING
PATH = "tests/test_outputs.py"
DOCKERFILE = "environment/Dockerfile"


def tests(*lines: str, says: str = "Write 42 to /app/answer.txt.", **files: object) -> dict[str, object]:
    return {PATH: "".join(f"{line}\n" for line in lines), "instruction.md": f"{says}\n", **files}


def image(*lines: str) -> dict[str, object]:
    return {DOCKERFILE: "FROM debian:bookworm-slim\nWORKDIR /app\n" + "".join(f"{line}\n" for line in lines)}


ASSERTED = [
    "from pathlib import Path",
    "OUT = Path('/app') / 'out'",
    "def test_a():",
    "    assert (OUT / 'report.json').exists(), 'no report'",
]
READ = ["def test_a():", "    with open('/app/report.json') as file:", "        assert file.read()"]
IMPORTED = ["import sys", "sys.path.insert(0, '/app')", "from calc import add", "def test_a():", "    assert add(1, 2)"]
LOADED = [
    "import importlib.util",
    "def load():",
    "    spec = importlib.util.spec_from_file_location('calc', '/app/calc.py')",
    "    module = importlib.util.module_from_spec(spec)",
    "    spec.loader.exec_module(module)",
    "    return module",
    "def test_a():",
    "    import calc",
    "    assert calc.add(1, 2) == 3",
]

FAULTS = [
    Fault("unsaid-path", tests(*READ), PATH, 2, W, "/app/report.json"),
    Fault("unsaid-path", tests(*ASSERTED, says="Write a summary."), PATH, 4, W, "/app/out/report.json"),
    Fault("unsaid-path", tests(*READ, says="Write it to /out/report.json."), PATH, 2, W, "it says /out/report.json"),
    Fault(
        "unsaid-path",
        {**tests(*READ), **image("RUN apt-get update && apt-get install -y curl", "COPY data /app/data"),
         "environment/data/in.txt": "1"},
        PATH,
        2,
        W,
    ),
    Fault(
        "unsaid-path",
        {
            "tests/test.sh": "#!/bin/bash\npython3 <<'PY'\nimport json\nok = json.load(open('/app/report.json'))\n"
            "open('/logs/verifier/reward.txt', 'w').write(str(int(ok['a'] == 1)))\nPY\n",
            PATH: None,
        },
        "tests/test.sh",
        4,
        W,
    ),
    Fault("unsaid-name", tests(*IMPORTED, says="Write a calculator to /app/calc.py."), PATH, 3, W, "add"),
    Fault("unsaid-name", tests(*LOADED, says="Write a calculator to /app/calc.py."), PATH, 9, W, "add"),
]  # fmt: skip

NEAR_MISSES: list[tuple[str, dict[str, object]]] = [
    ("unsaid-path", tests(*READ, says="Write `report.json`.")),
    ("unsaid-path", tests(*READ, says="Write the report as JSON.")),
    ("unsaid-path", tests(*READ, says="For each input write <name>.json.")),
    ("unsaid-path", tests(*READ, says="Write ./report.json below /app.")),
    ("unsaid-path", {**tests(*READ), **image("COPY . ."), "environment/report.json": "{}"}),
    ("unsaid-path", {**tests(*READ), **image("RUN echo {} > /app/report.json")}),
    ("unsaid-path", {**tests(*READ), **image("COPY gen.py /gen.py", "RUN python3 /gen.py"), "environment/gen.py": ""}),
    ("unsaid-path", {**tests(*READ), **image("COPY README /app/"), "environment/README": "Reports: report.json\n"}),
    ("unsaid-path", {**tests(*READ), DOCKERFILE: "FROM registry.example.org/task:7\n"}),
    ("unsaid-path", {**tests(*READ), "environment/compose.yaml": "services: {}\n"}),
    (
        "unsaid-path",
        tests(
            "import os, subprocess, tempfile",
            "from pathlib import Path",
            "def test_a():",
            "    Path('/app/made.txt').write_text('x')",
            "    assert Path('/app/made.txt').read_text()",
            "    if os.path.exists('/app/perhaps.txt'):",
            "        assert open('/app/perhaps.txt').read()",
            "    subprocess.run(['/app/run', '--out', '/app/ran.txt'], check=True)",
            "    assert open('/app/ran.txt').read()",
            "    subprocess.run('make > /app/log.txt', shell=True)",
            "    assert open('/app/log.txt').read()",
            "    assert not Path('/app/gone.txt').exists()",
            "    assert open('/tmp/a.txt').read() or open('/etc/passwd').read() or open('/tests/key.txt').read()",
            "    try:",
            "        open('/app/borne.txt').read()",
            "    except OSError:",
            "        pass",
        ),
    ),
    (
        "unsaid-path",
        tests(
            "OUT = '/app/out'", "import os", "def test_a(run):", "    run(OUT)", "    open('/app/out/x.json').read()"
        ),
    ),
    ("unsaid-path", tests("def test_a():", "    assert open('/app/build/CMakeCache.txt').read()", says="Build /app.")),
    ("unsaid-name", tests(*IMPORTED, says="Write `add` to /app/calc.py.")),
    ("unsaid-name", {**tests(*IMPORTED, says="Fix /app/calc.py."), "environment/calc.py": "def add(a, b): ...\n"}),
    ("unsaid-name", {**tests(*IMPORTED, says="Write calc.py."), "tests/calc.py": "def add(a, b): ...\n"}),
    ("unsaid-name", tests(*IMPORTED)),
    (
        "unsaid-name",
        tests(
            "try:",
            "    from calc import add",
            "except ImportError:",
            "    add = None",
            "import calc",
            "def test_a():",
            "    assert hasattr(calc, 'sub') and calc.sub(2, 1) and calc.__doc__",
            says="Write a calculator to /app/calc.py.",
        ),
    ),
    ("unsaid-name", {**tests(*IMPORTED, says="Write /app/calc.py."), **image("RUN git clone https://example.org/a .")}),
]
