from pathlib import Path

import pytest

from pytest_otval.core import Finding, Severity
from pytest_otval.task.load import load_task

LIMIT = "[agent]\ntimeout_sec = 60\n"
"""Without it each case would have a finding more."""


def findings(folder: Path, source: str) -> list[Finding]:
    (folder / "task.toml").write_text(source if "[agent]" in source else source + LIMIT, encoding="utf-8")
    return list(load_task(folder, "set").findings)


ERROR, WARNING, INFO = Severity.ERROR, Severity.WARNING, Severity.INFO

FAULTS = [
    # unknown keys
    ("[verifier]\nenviroment_mode = 'separate'\n", ERROR, "toml-unknown-field", 2, "did you mean `environment_mode`?"),
    ("[verifier]\ntimeout_secs = 5\n", ERROR, "toml-unknown-field", 2, "did you mean `timeout_sec`?"),
    ("[environments]\ncpus = 1\n", ERROR, "toml-unknown-field", 1, "did you mean `environment`?"),
    ("\n[scenario]\nid = 1\n", WARNING, "toml-unknown-field", 2, "move it to [metadata]"),
    ("[verifier]\ncpus = 1\n", WARNING, "toml-unknown-field", 2, "belongs to [environment]"),
    ("[agent]\ntimeout_sec = 1\nenv = {}\n", WARNING, "toml-unknown-field", 3, "[verifier] or [solution]"),
    ("[[steps]]\nname = 'a'\ntimeout_sec = 3\n", WARNING, "toml-unknown-field", 3, "[verifier] or [agent]"),
    ("[environment.healthcheck]\ncommand = 'x'\nretires = 3\n", ERROR, "toml-unknown-field", 3, "`retries`"),
    ("[[verifier.collect]]\ncommand = 'x'\n\nusr = 'a'\n", ERROR, "toml-unknown-field", 4, "`user`"),
    ("artifacts = [\n '/a',\n {source = '/b', exlude = []}]\n", ERROR, "toml-unknown-field", 3, "`exclude`"),
    # artifacts
    ("[verifier]\nartifacts = ['/a']\n", ERROR, "toml-misplaced-artifacts", 2, "before the first [table]"),
    ("[verifier]\ntimeout_sec = 1\n[environment]\nartifacts = []\n", ERROR, "toml-misplaced-artifacts", 4, ""),
    ("artifacts = [\n '/a', {source = '/c', destination = 'a/x'}]\n", WARNING, "toml-artifact-overlap", 2, "dest"),
    # old keys
    ("\nversion = '1.0'\n", INFO, "toml-deprecated", 2, "`schema_version`"),
    ("version = '1.0'\nschema_version = '1.3'\n", WARNING, "toml-lost-value", 1, "drop `version`"),
    ("[environment]\nmemory = '4G'\n", INFO, "toml-deprecated", 2, "`memory_mb`"),
    ("[environment]\nmemory = 4096\n", ERROR, "toml-lost-value", 2, "`memory_mb`"),
    ("[environment]\nstorage = 10\nstorage_mb = 10240\n", WARNING, "toml-lost-value", 2, "`storage_mb`"),
    ("[verifier.environment]\nstorage = ['1G']\n", ERROR, "toml-lost-value", 2, "`storage_mb`"),
    ("[environment]\nallow_internet = true\n", INFO, "toml-deprecated", 2, "`network_mode`"),
    ("[environment]\nallow_internet = false\nnetwork_mode = 'public'\n", ERROR, "toml-lost-value", 2, "drop"),
    ("[environment]\nallow_internet = true\nnetwork_mode = 'no-network'\n", ERROR, "toml-lost-value", 2, "drop"),
    ("[environment]\nallow_internet = false\nallowed_hosts = []\n", ERROR, "toml-lost-value", 2, "drop"),
    ("multi_step_reward_mode = 'final'\n[[steps]]\nname = 'a'\n", ERROR, "toml-lost-value", 1, "_strategy"),
    ("multi_step_reward_mode = 'mean'\n[[steps]]\nname = 'a'\n", INFO, "toml-lost-value", 1, "_strategy"),
    ("multi_step_reward_strategy = 'final'\n", WARNING, "toml-lost-value", 1, "drop it"),
    ("schema_version = '99.9'\n", WARNING, "toml-schema-version", 1, "1.4"),
    # coercions
    ("[verifier]\ntimeout_sec = '120'\n", WARNING, "toml-coerced", 2, "quotes"),
    ("[verifier]\ntimeout_sec = true\n", ERROR, "toml-coerced", 2, "number"),
    ("[verifier]\nuser = true\n", ERROR, "toml-coerced", 2, "number"),
    ("[environment]\nallow_internet = 'no'\nnetwork_mode = 'no-network'\n", WARNING, "toml-coerced", 2, "or false"),
    ("[environment]\ncpus = '2'\n", WARNING, "toml-coerced", 2, "quotes"),
    # ranges
    ("[verifier]\ntimeout_sec = -5\n", ERROR, "toml-out-of-range", 2, ""),
    ("[verifier]\ntimeout_sec = 0\n", ERROR, "toml-out-of-range", 2, ""),
    ("[verifier]\ntimeout_sec = nan\n", ERROR, "toml-out-of-range", 2, ""),
    ("[verifier]\ntimeout_sec = inf\n", ERROR, "toml-out-of-range", 2, ""),
    ("[agent]\ntimeout_sec = 0\n", ERROR, "toml-out-of-range", 2, ""),
    ("[environment]\nbuild_timeout_sec = 0.0\n", ERROR, "toml-out-of-range", 2, ""),
    ("[environment]\ncpus = -2\n", ERROR, "toml-out-of-range", 2, ""),
    ("[environment]\nmemory_mb = -1\n", ERROR, "toml-out-of-range", 2, ""),
    ("[environment]\nmemory = '100K'\n", ERROR, "toml-out-of-range", 2, ""),
    ("[environment]\nstorage_mb = 0\n", ERROR, "toml-out-of-range", 2, ""),
    ("[environment]\ngpus = -1\n", ERROR, "toml-out-of-range", 2, ""),
    ("[environment.healthcheck]\ncommand = 'x'\nretries = 0\n", ERROR, "toml-out-of-range", 3, ""),
    ("[[steps]]\nname = 'a'\nmin_reward = nan\n", ERROR, "toml-out-of-range", 3, ""),
    ("[[steps]]\nname = 'a'\nmin_reward = {a = 1, b = inf}\n", ERROR, "toml-out-of-range", 3, ""),
    # the rest
    ("[verifier.env]\nA = '1'\nB = '${KEY}'\n", WARNING, "toml-env-no-default", 3, "default"),
    ("[verifier.env]\nB = '${OPENAI_API_KEY}'\n", INFO, "toml-env-no-default", 2, "default"),
    ("[[steps]]\nname = 'a'\n[steps.verifier.env]\nB = '${KEY}'\n", WARNING, "toml-env-no-default", 4, "default"),
    ("[solution]\nenv = {A = '/opt:${PATH}'}\n", WARNING, "toml-env-literal", 2, "whole value"),
    ("[environment]\nnetwork_mode = 'allowlist'\n", WARNING, "toml-allowlist-empty", 2, "allowed_hosts"),
    ("[verifier]\nnetwork_mode = 'allowlist'\nallowed_hosts = []\n", WARNING, "toml-allowlist-empty", 2, "no-network"),
    ("[environment]\nworkdir = 'app'\n", ERROR, "toml-relative-path", 2, "from /"),
    ("[verifier]\ntimeout_sec = 900\n[[steps]]\nname = 'a'\n", ERROR, "toml-step-timeout", 3, "timeout_sec = 900"),
    ("[agent]\nuser = 'x'\n", WARNING, "toml-timeouts-present", 1, "timeout_sec"),
    ("[agent]\n[[steps]]\nname = 'a'\n[steps.agent]\ntimeout_sec = 1\n[[steps]]\nname = 'b'\n",
     WARNING, "toml-timeouts-present", 1, "timeout_sec"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "severity", "check", "line", "fix"), FAULTS)
def test_what_harbor_swallows_is_told(
    tmp_path: Path, source: str, severity: Severity, check: str, line: int, fix: str
) -> None:
    found = findings(tmp_path, source)
    (finding,) = [other for other in found if other.severity != INFO] or found
    assert (finding.severity, finding.check, finding.line) == (severity, check, line), finding
    assert finding.path == "task.toml"
    assert fix in finding.fix
    assert finding.fix


SOUND = [
    "schema_version = '1.0'\n",
    "[metadata]\nversion = 1\ntimeout = true\nartifacts = []\n[metadata.deep]\ncpu = 1\n",
    "[verifier.env]\ntimeout = 'x'\nA = '${KEY:-}'\nB = '$HOME'\nC = '{x}'\n",
    "[environment]\nenv = {memory = '4'}\nmemory_mb = 1024.0\ncpus = 0.5\ngpus = 0\nworkdir = '/app'\nos = 'LINUX'\n",
    "[environment]\nos = 'windows'\nworkdir = 'C:\\app'\n",
    "[verifier]\nuser = '1000'\ntimeout_sec = 600\n[[steps]]\nname = 'a'\n",
    "[verifier]\ntimeout_sec = 900\n[[steps]]\nname = 'a'\n[steps.verifier]\ntimeout_sec = 900\n",
    "[agent]\n[[steps]]\nname = 'a'\n[steps.agent]\ntimeout_sec = 1\n",
    "artifacts = ['/a', '/a/b', {source = '/c'}, '/logs/artifacts', '/ab', '/a']\n",
    "[[steps]]\nname = 'a'\nartifacts = ['/a']\n[[steps]]\nname = 'b'\nartifacts = ['/a']\n",
    "multi_step_reward_strategy = 'final'\n[[steps]]\nname = 'a'\n",
    "[environment]\nnetwork_mode = 'allowlist'\nallowed_hosts = ['a.com']\n",
    "[[environment.mcp_servers]]\nname = 'a'\nurl = 'x'\nheaders = {timeout = 'x'}\n",
    "[task]\nname = 'a/b'\nversion = '2'\nauthors = [{name = 'x'}]\n",
]


@pytest.mark.parametrize("source", SOUND)
def test_what_harbor_reads_as_written_has_no_finding(tmp_path: Path, source: str) -> None:
    assert findings(tmp_path, source) == []


def test_findings_do_not_need_a_valid_file(tmp_path: Path) -> None:
    found = findings(tmp_path, "[environment]\ncpus = -1\nmemory_mb = 'much'\n")
    assert {finding.check for finding in found} == {"toml-invalid", "toml-out-of-range"}
