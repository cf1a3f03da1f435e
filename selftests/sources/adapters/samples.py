"""Small records for adapters, as their sources would have them."""

import difflib
import io
import json
import tarfile

import pyarrow
from pyarrow import parquet

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def diff(path, before, after):
    """A patch as git writes it."""
    old = f"a/{path}" if before else "/dev/null"
    lines = difflib.unified_diff(before.splitlines(True), after.splitlines(True), old, f"b/{path}")
    return f"diff --git a/{path} b/{path}\n" + ("" if before else "new file mode 100644\n") + "".join(lines)


CODE, FIXED = "def add(a, b):\n    return a - b\n", "def add(a, b):\n    return a + b\n"
TESTS = (
    "import pytest\n\nfrom product import add\n\n\n"
    '@pytest.mark.parametrize("text, total", [("1 2", 3), ("2 2", 4), ("5", 5)])\n'
    "def test_sum(text, total):\n    parts = [int(part) for part in text.split()]\n"
    "    assert (add(*parts) if len(parts) == 2 else parts[0]) == total\n\n\n"
    "def test_zero():\n    assert add(1, 0) == 1\n"
)


def row(**changes):
    """A row in the manner of SWE-bench; a field that is None is left out."""
    values = {
        "instance_id": "owner__product-1",
        "repo": "owner/product",
        "base_commit": COMMIT,
        "patch": diff("product.py", CODE, FIXED),
        "test_patch": diff("tests/test_product.py", "", TESTS),
        "problem_statement": "`add(1, 2)` of product gives -1, and it should give 3.",
        "FAIL_TO_PASS": json.dumps(
            ["tests/test_product.py::test_sum[1 2-3]", "tests/test_product.py::test_sum[2 2-4]"]
        ),
        "PASS_TO_PASS": ["tests/test_product.py::test_sum[5-5]", "tests/test_product.py::test_zero"],
        "docker_image": "example/product:1",
        **changes,
    }
    return {key: value for key, value in values.items() if value is not None}


def scale_row(**changes):
    """A row with the columns of Scale-SWE; a field that is None is left out."""
    names = ("repo", "base_commit", "test_patch", "docker_image", "FAIL_TO_PASS")
    values = {
        **row(instance_id="owner_product_pr1", **dict.fromkeys(names)),
        "user": "owner",
        "repo": "product",
        "parent_commit": COMMIT,
        "image_url": "example/product:1",
        "workdir": "/workspace/product",
        "pre_commands": f"cd /workspace/product\ngit checkout {COMMIT}\n",
        "f2p_patch": diff("tests/test_product.py", "", TESTS),
        "f2p_script": "from product import add\n\n\ndef test_sum():\n    assert add(1, 2) == 3\n",
        "FAIL_TO_PASS": ["test_fail_to_pass.py::test_sum"],
        **changes,
    }
    return {key: value for key, value in values.items() if value is not None}


def write_jsonl(path, rows):
    path.write_text("".join(f"{json.dumps(one)}\n" for one in rows))
    return path


def write_parquet(path, rows, **options):
    parquet.write_table(pyarrow.Table.from_pylist(rows), path, **options)
    return path


def write_folder(folder, files):
    for path, content in files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def bug(**changes):
    """The files of one bug of BugsInPy, and of its project."""
    return {
        "projects/product/project.info": 'github_url="https://github.com/owner/product"\nstatus="OK" \n',
        "projects/product/bugs/1/bug.info": (
            f'python_version="3.8.3"\nbuggy_commit_id="{COMMIT}"\nfixed_commit_id ="{COMMIT[::-1]}"\n'
            'test_file="tests/test_product.py"\n'
        ),
        "projects/product/bugs/1/run_test.sh": "pytest tests/test_product.py::test_sum\r\n",
        "projects/product/bugs/1/bug_patch.txt": diff("product.py", CODE, FIXED),
        "projects/product/bugs/1/requirements.txt": "pytest==5.4.3\r\n".encode("utf-16"),
        "projects/product/bugs/1/setup.sh": "pip install -e .\r\n",
        **{f"projects/product/bugs/1/{name}": content for name, content in changes.items()},
    }


COMPOSE = """services:
  client:
    build:
      dockerfile: Dockerfile
    image: ${T_BENCH_TASK_DOCKER_CLIENT_IMAGE_NAME}
    container_name: ${T_BENCH_TASK_DOCKER_CLIENT_CONTAINER_NAME}
    command: [ "sh", "-c", "sleep infinity" ]
    environment:
      - TEST_DIR=${T_BENCH_TEST_DIR}
    volumes:
      - ${T_BENCH_TASK_LOGS_PATH}:${T_BENCH_CONTAINER_LOGS_PATH}
    deploy:
      resources:
        limits:
          cpus: '1'
          memory: 512M
"""
TASK_YAML = """instruction: |-
  Write the sum of the numbers in /app/numbers.txt to /app/sum.txt.
author_email: unknown
difficulty: easy
tags: [sums]
parser_name: pytest
max_agent_timeout_sec: 600
max_test_timeout_sec: 120.0
"""


def old_task(**changes):
    """The files of a task in Terminal-Bench's old format."""
    files = {
        "task.yaml": TASK_YAML,
        "docker-compose.yaml": COMPOSE,
        "Dockerfile": "FROM python:3.12-slim\nRUN pip install pytest==8.4.1\nWORKDIR /app\nCOPY numbers.txt /app/\n",
        "numbers.txt": "1\n2\n3\n",
        "run-tests.sh": "#!/bin/bash\npython -m pytest $TEST_DIR/test_outputs.py -rA\n",
        "solution.sh": "echo 6 > /app/sum.txt\n",
        "tests/test_outputs.py": (
            "from pathlib import Path\n\n\ndef test_sum():\n    assert Path('/app/sum.txt').read_text() == '6\\n'\n"
        ),
        **changes,
    }
    return {path: content for path, content in files.items() if content is not None}


HARBOR = {
    "task.toml": b'schema_version = "1.4"\n\n[agent]\ntimeout_sec = 60.0\n\n[verifier]\ntimeout_sec = 60.0\n',
    "instruction.md": b"Write 42 to /app/answer.txt.\n",
    "environment/Dockerfile": b"FROM debian:bookworm-slim\nWORKDIR /app\n",
    "tests/test.sh": b"#!/bin/bash\nmkdir -p /logs/verifier\ngrep -qx 42 /app/answer.txt\necho $? > /logs/verifier/x\n",
}


def packed(files=HARBOR, members=()):
    """A tar archive of files, and of further members as they are."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for path, content in files.items():
            info = tarfile.TarInfo(path)
            info.size, info.mode = len(content), 0o755 if path.endswith(".sh") else 0o644
            archive.addfile(info, io.BytesIO(content))
        for member in members:
            archive.addfile(member)
    return buffer.getvalue()
