"""Converted tasks in real containers: the reference solution is paid, and doing nothing is not."""

import pytest

from pytest_otval.sources.adapters.registry import make_adapter
from pytest_otval.sources.files import publish_folder
from pytest_otval.task.load import load_task
from selftests.sources.adapters.samples import CODE, old_task, row, write_folder, write_jsonl

pytestmark = pytest.mark.integration

PACKAGES = (
    "FROM debian:bookworm-slim\n"
    "RUN apt-get update && apt-get install -y --no-install-recommends git python3-pytest \\\n"
    "    && rm -rf /var/lib/apt/lists/*\n"
)
REPOSITORY = (
    "WORKDIR /testbed\n"
    f"RUN printf '{CODE.encode('unicode_escape').decode()}' > product.py \\\n"
    "    && git init -q . && git add -A && git -c user.name=a -c user.email=a@b commit -q -m old \\\n"
    "    && sed -i 's/a - b/a + b/' product.py && git -c user.name=a -c user.email=a@b commit -q -a -m fix \\\n"
    "    && git tag fixed && git checkout -q HEAD~1\n"
)


ATTACKS = ("plugin-workdir", "conftest-workdir", "shadow-pytest", "git-hook", "pytest-replaced", "tests-edited")
"""By files of the repository, its git, the image's pytest, the tests."""


@pytest.fixture
def loaded(tmp_path):
    def make(adapter, source, changes):
        (outcome,) = make_adapter(adapter).convert(source)
        files = dict(outcome.files)
        for path in [path for path in files if path.endswith("/Dockerfile")]:
            files[path] = changes(files[path])
        publish_folder(files, tmp_path / "set/tasks" / outcome.name)
        return load_task(tmp_path / "set/tasks" / outcome.name, "set")

    return make


def test_a_row(ask_real, loaded, tmp_path):
    def without_registry(file):
        own = file.content.decode().removeprefix("FROM example/product:1\n")
        return type(file)((PACKAGES + REPOSITORY + own).encode())

    source = write_jsonl(tmp_path / "rows.jsonl", [row()])
    task = loaded("swe", source, without_registry)
    build = ask_real("build", task)
    assert build.reason == "expected", build
    oracle = ask_real("oracle", task)
    assert oracle.reason == "expected", oracle
    noop = ask_real("noop", task)
    assert noop.reason == "expected", noop
    attacked = ask_real("adversary", task, attacks=ATTACKS)
    assert attacked.facts["attacks"] == dict.fromkeys(ATTACKS, "stopped"), attacked


def test_an_old_task(ask_real, loaded, tmp_path):
    dockerfile = f"{PACKAGES}WORKDIR /app\nCOPY numbers.txt /app/\n"
    script = "#!/bin/bash\npython3 -m pytest -p no:cacheprovider $TEST_DIR/test_outputs.py -rA\n"
    files = old_task(**{"Dockerfile": dockerfile, "run-tests.sh": script})
    source = write_folder(tmp_path / "source", {f"sum/{path}": content for path, content in files.items()})
    task = loaded("terminal-bench", source, lambda file: file)
    for stage in ("build", "oracle", "noop"):
        result = ask_real(stage, task)
        assert result.reason == "expected", result
