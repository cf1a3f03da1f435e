"""Each check on a task with its fault, and on a sound task that looks almost like it."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from pytest_otval.checks.registry import all_checks
from pytest_otval.core import Severity
from selftests.checks import tables

PASS_FAIL = "if [ {} ]; then\n  echo 1 > /logs/verifier/reward.txt\nelse\n  echo 0 > /logs/verifier/reward.txt\nfi\n"
BY_STATUS = PASS_FAIL.format("$? -eq 0")
RUN = "pytest /tests/test_outputs.py\n"
TOML = 'schema_version = "1.4"\n[agent]\ntimeout_sec = 60\n[verifier]\ntimeout_sec = 60\n'
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "a" * 64 + "\nsize 12345\n"
SOLVE = "#!/bin/bash\n# The reference solution of a task that a shell can do alone.\necho 42 > /app/answer.txt\n"
TEST_PY = 'def test_answer():\n    assert open("/app/answer.txt").read().strip() == "42", "the answer is wrong"\n'
STEPS = TOML + '[[steps]]\nname = "one"\nverifier.timeout_sec = 9\n[[steps]]\nname = "two"\nverifier.timeout_sec = 9\n'


def script(*lines: str, shebang: str = "#!/bin/bash") -> dict[str, object]:
    return {"tests/test.sh": f"{shebang}\n" + "".join(f"{line.rstrip()}\n" for line in lines)}


def docker(*lines: str) -> str:
    return "FROM debian:bookworm-slim\n" + "".join(f"{line}\n" for line in lines)


@dataclass(frozen=True)
class Fault:
    check: str
    edits: dict[str, object]
    path: str
    line: int | None = None
    severity: Severity = Severity.ERROR
    says: str = field(default="")


W = Severity.WARNING

FAULTS = [
    Fault("files-required", {"instruction.md": None}, "instruction.md"),
    Fault("files-required", {"tests/test.sh": None}, "tests/test.sh"),
    Fault("files-required", {"environment/Dockerfile": None}, "environment", says="no docker_image"),
    Fault("files-required", {"environment/Dockerfile": None, "environment/x": "x"}, "environment", says="defines"),
    Fault("files-required", {"environment/Dockerfile": None, "environment/.gitkeep": ""}, "environment", severity=W),
    Fault("files-required", {"tests/test.sh": ("fifo", "")}, "tests/test.sh"),
    Fault("files-required", {"task.toml": STEPS, "steps/one/instruction.md": "do"}, "steps/two/instruction.md"),
    Fault("files-instruction-empty", {"instruction.md": "<!-- harbor-canary GUID 1 -->\n\n \n"}, "instruction.md"),
    Fault("files-solution-missing", {"solution/solve.sh": None}, "solution/solve.sh", severity=W),
    Fault("entries-link-escape", {"environment/key": ("link", "../../key")}, "environment/key"),
    Fault("entries-link-escape", {"tests/python": ("link", "/usr/bin/python3")}, "tests/python"),
    Fault("entries-link-dangling", {"environment/a": ("link", "b")}, "environment/a", severity=W),
    Fault("entries-link-dangling", {"environment/a": ("link", "a")}, "environment/a", severity=W),
    Fault("entries-special", {"environment/pipe": ("fifo", "")}, "environment/pipe"),
    Fault("entries-case-collision", {"tests/data": "1", "tests/Data": "2"}, "tests/data", severity=W),
    Fault("entries-lfs-pointer", {"tests/model.bin": POINTER}, "tests/model.bin", 1),
    Fault("text-crlf", {"solution/solve.sh": SOLVE.replace("\n", "\r\n")}, "solution/solve.sh", 1),
    Fault("text-crlf", {"tests/lib.sh": "echo a\necho b\r\n"}, "tests/lib.sh", 2, W),
    Fault("text-crlf", {"environment/Dockerfile": "FROM debian\r\n"}, "environment/Dockerfile", 1, W),
    Fault("text-crlf", {"task.toml": TOML.replace("\n", "\r\n")}, "task.toml", 1, Severity.INFO),
    Fault("text-bom", {"solution/solve.sh": b"\xef\xbb\xbf" + SOLVE.encode()}, "solution/solve.sh", 1, W),
    Fault("text-encoding", {"instruction.md": b"Write\n\xff\xfe\n"}, "instruction.md", 2),
    Fault("text-encoding", {"solution/solve.sh": SOLVE.encode() + b"# \xe9t\xe9\n"}, "solution/solve.sh", 4, W),
    Fault(
        "scripts-shell-syntax", {"solution/solve.sh": "#!/bin/bash\nif true; then\n  echo\n"}, "solution/solve.sh", 4
    ),
    Fault("scripts-shell-syntax", {"solution/solve.sh": "#!/bin/sh\necho )\n"}, "solution/solve.sh", 2),
    Fault("scripts-python-syntax", {"tests/test_more.py": "def test():\n    assert (1\n"}, "tests/test_more.py", 2),
    Fault("scripts-python-syntax", {"tests/test_more.py": "print 1\n"}, "tests/test_more.py", 1, W),
    Fault("scripts-shebang", {"solution/solve.sh": "echo 42\n"}, "solution/solve.sh", 1, W),
    Fault(
        "scripts-shebang",
        {"solution/solve.sh": "#!/bin/bash\nimport os\nprint(os.getcwd(), end='')\n"},
        "solution/solve.sh",
        1,
    ),
    Fault(
        "scripts-shebang",
        {"solution/solve.sh": "#!/usr/bin/env python3\nif true; then echo; fi\n"},
        "solution/solve.sh",
        1,
    ),
    Fault(
        "scripts-exec-bit",
        script("/tests/run.sh", BY_STATUS) | {"tests/run.sh": ("0644", "#!/bin/bash\n")},
        "tests/test.sh",
        2,
    ),
    Fault("docker-parse", {"environment/Dockerfile": docker("RNU true")}, "environment/Dockerfile", 2, says="RNU"),
    Fault("docker-parse", {"environment/Dockerfile": "# nothing\n"}, "environment/Dockerfile", 1),
    Fault("docker-parse", {"environment/Dockerfile": "RUN true\n"}, "environment/Dockerfile", 1),
    Fault("docker-copy-missing", {"environment/Dockerfile": docker("COPY app.py /app/")}, "environment/Dockerfile", 2),
    Fault("docker-copy-missing", {"environment/Dockerfile": docker("ADD a.tar /")}, "environment/Dockerfile", 2),
    Fault(
        "docker-copy-missing",
        {
            "environment/Dockerfile": docker("COPY a.py /"),
            "environment/a.py": "",
            "environment/.dockerignore": "*.py\n",
        },
        "environment/Dockerfile",
        2,
        says=".dockerignore",
    ),
    Fault(
        "docker-copy-missing",
        {"task.toml": TOML + '[environment]\ndocker_image = "x"\n', "environment/Dockerfile": docker("COPY a /")},
        "environment/Dockerfile",
        2,
        W,
    ),
    Fault(
        "docker-solution-copied",
        {"environment/Dockerfile": docker("COPY . /app/"), "environment/s/fix.sh": SOLVE},
        "environment/s/fix.sh",
    ),
    Fault(
        "docker-solution-copied",
        {"environment/Dockerfile": docker("COPY *.py /app/"), "environment/a.py": TEST_PY, "solution/a.py": TEST_PY},
        "environment/a.py",
        severity=W,
    ),
    Fault(
        "docker-tests-copied",
        {
            "environment/Dockerfile": docker("COPY t /app/"),
            "environment/t/t.py": TEST_PY,
            "tests/test_outputs.py": TEST_PY,
            "tests/z": ("link", "test.sh"),
        },
        "environment/t/t.py",
        severity=W,
    ),
    Fault("reward-missing", script(RUN), "tests/test.sh", says="mentions"),
    Fault("reward-missing", script("# 1 goes to /logs/verifier/reward.txt", RUN), "tests/test.sh", says="no way"),
    Fault("reward-path", script(RUN, "echo $? > /logs/reward.txt"), "tests/test.sh", 3),
    Fault("reward-path", script(RUN, "echo $? > /logs/verifier/rewards.txt"), "tests/test.sh", 3),
    Fault("reward-unconditional", script(RUN, "echo 1 > /logs/verifier/reward.txt"), "tests/test.sh"),
    Fault("reward-status-lost", script(RUN.strip() + " || true", BY_STATUS), "tests/test.sh", 2),
    Fault("reward-lost-on-failure", script("set -e", RUN, "echo 1 > /logs/verifier/reward.txt"), "tests/test.sh", 3),
    Fault("network-at-verify", script("pip install pytest==8.4.1", RUN, BY_STATUS), "tests/test.sh", 2, W),
    Fault("vacuous-tests", {"tests/test_outputs.py": "def test_a():\n    assert True\n"}, "tests/test_outputs.py", 1),
    Fault("vacuous-tests", {"tests/test_more.py": "def test_a():\n    pass\n"}, "tests/test_more.py", 1, W),
    Fault(
        "vacuous-skipped",
        {"tests/test_outputs.py": "import pytest\npytestmark = pytest.mark.skip\n" + TEST_PY},
        "tests/test_outputs.py",
        3,
    ),
    Fault(
        "vacuous-skipped",
        {"tests/test_more.py": "import pytest\n@pytest.mark.skip(reason='x')\n" + TEST_PY},
        "tests/test_more.py",
        3,
        W,
    ),
    Fault("vacuous-no-tests", {"tests/test_more.py": ""}, "tests/test_more.py", severity=W),
]

SOUND_ONES: list[tuple[str, dict[str, object]]] = [
    ("files-required", {"environment/Dockerfile": None, "task.toml": TOML + '[environment]\ndocker_image = "x"\n'}),
    ("files-required", {"environment/Dockerfile": None, "environment/docker-compose.yaml": "services: {}\n"}),
    (
        "files-required",
        {
            "tests/test.sh": None,
            "task.toml": TOML + 'environment_mode = "separate"\n',
            "tests/Dockerfile": "FROM debian\nRUN echo > /tests/test.sh\n",
        },
    ),
    (
        "files-required",
        {
            "task.toml": STEPS,
            "instruction.md": None,
            "steps/one/instruction.md": "do",
            "steps/two/instruction.md": "do",
        },
    ),
    ("files-instruction-empty", {"instruction.md": "# harbor-canary GUID 1\nGo.\n"}),
    ("files-solution-missing", {"task.toml": STEPS, "steps/one/instruction.md": "a", "steps/two/instruction.md": "b"}),
    ("entries-link-escape", {"environment/a/b": ("link", "../../tests/test.sh"), "tests/x": ("link", "test.sh")}),
    ("entries-link-dangling", {"environment/now": ("link", "v1"), "environment/v1/x": "x"}),
    ("entries-special", {"environment/pipe": "", "environment/pipe.fifo": "mkfifo"}),
    ("entries-case-collision", {"tests/a/data": "1", "tests/b/Data": "2"}),
    (
        "entries-lfs-pointer",
        {"tests/about-lfs.txt": "version https://git-lfs.github.com/spec/v1\n" + "is a format\n" * 9},
    ),
    ("entries-lfs-pointer", {"environment/a.bin": POINTER, "instruction.md": "Replace the Git LFS pointers.\n"}),
    ("text-crlf", {"tests/expected.txt": "a\r\nb\r\n", "environment/x.sh": "#!/bin/sh\r\n"}),
    ("text-bom", {"tests/expected.csv": b"\xef\xbb\xbfa,b\n"}),
    ("text-encoding", {"instruction.md": "Schreibe \u20ac 42 \U0001f600.\n", "tests/latin.txt": b"\xe9"}),
    ("scripts-shell-syntax", {"environment/broken.sh": "if\n", "tests/data/broken.sh": "if\n"}),
    ("scripts-shell-syntax", {"solution/solve.sh": "#!/usr/bin/env python3\nprint(1 if True else 2)\n"}),
    ("scripts-python-syntax", {"tests/data/test_broken.py": "def (\n", "environment/test_a.py": "def (\n"}),
    ("scripts-shebang", {"solution/solve.sh": "#!/usr/bin/env -S bash -eu\necho 1\n"}),
    ("scripts-exec-bit", script("chmod +x /tests/run.sh", "/tests/run.sh", BY_STATUS) | {"tests/run.sh": ("0644", "")}),
    ("scripts-exec-bit", script("bash /tests/run.sh", BY_STATUS) | {"tests/run.sh": ("0644", "")}),
    ("docker-parse", {"environment/Dockerfile": "ARG V=12\n" + docker("RUN <<EOF", "echo", "EOF")}),
    ("docker-parse", {"environment/Dockerfile": docker("RUN python3 << 'PY'", "from os import path", "PY")}),
    (
        "docker-copy-missing",
        {
            "environment/Dockerfile": docker(
                "COPY --from=other /x /x",
                "ADD https://example.org/x /x",
                "COPY *.none /",
                "COPY <<EOF /y",
                "text",
                "EOF",
                "COPY ./a/../a/ /a",
                "COPY /b.txt /b",
                "ARG F=q",
                "COPY $F /q",
            ),
            "environment/a/x": "",
            "environment/b.txt": "",
        },
    ),
    (
        "docker-solution-copied",
        {"environment/Dockerfile": docker("COPY app /app/"), "environment/fix.sh": SOLVE, "environment/app/a": ""},
    ),
    (
        "docker-solution-copied",
        {
            "environment/Dockerfile": "FROM debian AS one\nCOPY fix.sh /\n" + docker("COPY a /"),
            "environment/fix.sh": SOLVE,
            "environment/a": "",
        },
    ),
    (
        "docker-tests-copied",
        {"environment/Dockerfile": docker("COPY . /"), "environment/__init__.py": "", "tests/__init__.py": ""},
    ),
    (
        "reward-missing",
        script("/tests/grade.py")
        | {"tests/grade.py": ("0755", "#!/usr/bin/python3\nopen('/logs/verifier/reward.txt', 'w')\n")},
    ),
    ("reward-missing", script("/opt/grade") | {"environment/grade.c": "/logs/verifier/reward.txt"}),
    ("reward-path", script("D=/logs/verifier", RUN, "echo $? > $D/reward.txt", "cp $D/reward.txt /logs/reward.txt")),
    (
        "reward-path",
        script(
            RUN,
            "echo $? > /tmp/rewards.txt",
            "python3 -c \"open('/logs/verifier/reward' + '.txt')\"",
            "cd /logs/verifier; mv /tmp/rewards.txt reward.txt",
        ),
    ),
    (
        "reward-unconditional",
        script("echo 1 > /logs/verifier/reward.txt", RUN, "[ $? -eq 0 ] || echo 0 > /logs/verifier/reward.txt"),
    ),
    ("reward-unconditional", script("out=", "out+=$(pytest /tests 2>&1)", BY_STATUS)),
    (
        "reward-unconditional",
        {
            "task.toml": 'multi_step_reward_strategy = "final"\n' + STEPS,
            "steps/one/instruction.md": "Read the file.",
            "steps/two/instruction.md": "Say what it says.",
            "steps/one/tests/test.sh": "#!/bin/bash\necho 1 > /logs/verifier/reward.txt\n",
        },
    ),
    ("reward-status-lost", script("set -o pipefail", "pytest /tests | tee /tmp/log", BY_STATUS)),
    (
        "reward-lost-on-failure",
        script("set -e", "echo 0 > /logs/verifier/reward.txt", RUN, "echo 1 > /logs/verifier/reward.txt"),
    ),
    (
        "network-at-verify",
        script(
            "pip install --no-index pytest", "pip install /tests/x.whl", "curl http://localhost:80/", RUN, BY_STATUS
        ),
    ),
    ("network-at-verify", {"solution/solve.sh": "#!/bin/bash\ncurl https://example.org\n"}),
    ("vacuous-tests", {"tests/test_outputs.py": "from lib import check\n\ndef test_a():\n    check()\n"}),
    (
        "vacuous-skipped",
        {
            "tests/test_outputs.py": "import pytest, sys\n@pytest.mark.skipif(sys.platform == 'x', reason='')\n"
            + TEST_PY
        },
    ),
    ("vacuous-no-tests", {"tests/__init__.py": "", "tests/conftest.py": ""}),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.check)
def test_a_fault_is_found(look, fault):
    found = [one for one in look(fault.edits) if one.check == fault.check and one.path == fault.path]
    assert [(one.line, one.severity) for one in found] == [(fault.line, fault.severity)]
    assert fault.says in found[0].message
    assert found[0].fix


@pytest.mark.parametrize(("check", "edits"), SOUND_ONES, ids=[check for check, _ in SOUND_ONES])
def test_a_near_miss_is_not_found(look, check, edits):
    assert [str(one) for one in look(edits) if one.check == check or one.severity is Severity.ERROR] == []


def test_the_sound_task_has_no_finding(look):
    assert look() == ()


@pytest.mark.parametrize("check", sorted(all_checks().keys() - {"entries-unreadable", "entries-too-many"}))
def test_each_check_has_a_fault_and_a_near_miss(check):
    """In the tables of this folder; all but the two of test_tree, which need a folder that no file edit makes."""
    assert check in {fault.check for fault in tables.faults()}
    assert check in {name for name, _ in tables.near_misses()}


def test_a_dataset_without_solutions_is_not_told_so(look):
    assert look({"solution/solve.sh": None}, oracle="none") == ()
