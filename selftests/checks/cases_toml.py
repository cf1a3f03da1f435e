"""Faults and near misses of what task.toml says."""

from __future__ import annotations

from pytest_otval.core import Severity
from selftests.checks.test_check_cases import Fault

W, INFO = Severity.WARNING, Severity.INFO
PATH = "task.toml"


def toml(*lines: str, agent: str = "60", verifier: str = "60") -> dict[str, object]:
    head = f'schema_version = "1.4"\n[agent]\ntimeout_sec = {agent}\n[verifier]\ntimeout_sec = {verifier}\n'
    return {PATH: head + "".join(f"{line}\n" for line in lines)}


OFFLINE = ["[environment]", 'network_mode = "no-network"', "cpus = 1"]
STEP = ["[[steps]]", 'name = "one"', "[steps.agent]", "timeout_sec = 20", "[steps.verifier]", "timeout_sec = 90"]
ONE = {"steps/one/instruction.md": "Write 42 to /app/answer.txt.\n"}

FAULTS = [
    Fault("toml-name-folder", toml("[task]", 'name = "org/other"'), PATH, 7, W, "org/other"),
    Fault("toml-template-default", toml("[metadata]", 'author_name = "Your Name"'), PATH, 7, W),
    Fault("toml-template-default", toml("[metadata]", 'difficulty = "{difficulty}"'), PATH, 7, W),
    Fault(
        "toml-template-default",
        toml("[task]", 'name = "org/task"', 'authors = [{name = "A", email = "you@example.com"}]'),
        PATH,
        8,
        W,
    ),
    Fault("toml-agent-below-verifier", toml(verifier="90"), PATH, 5, INFO),
    Fault("toml-agent-below-verifier", {**toml(*STEP), **ONE}, PATH, 11, INFO),
    Fault("toml-time-unit", toml(agent="10"), PATH, 3, W, "minutes"),
    Fault("toml-time-unit", toml(verifier="600000", agent="600000.5"), PATH, 3, W, "milliseconds"),
    Fault("toml-time-unit", toml("[environment]", "build_timeout_sec = 10"), PATH, 7, W),
    Fault(
        "toml-time-estimates",
        toml("[metadata]", "expert_time_estimate_min = 1800", "junior_time_estimate_min = 60"),
        PATH,
        7,
        W,
    ),
    Fault("toml-resource-unit", toml("[environment]", "cpus = 2", "memory_mb = 8"), PATH, 8, W),
    Fault(
        "toml-otval",
        toml("[metadata.otval]", 'isolation = "strong"'),
        PATH,
        7,
        Severity.ERROR,
        "'strong' is none of none, fresh",
    ),
    Fault("toml-otval", toml("[metadata.otval]", 'process_scope = "task"'), PATH, 7, Severity.ERROR, "phase, trial"),
    Fault(
        "toml-otval",
        toml("[metadata.otval]", 'keep = ["/opt/x", "numpy"]'),
        PATH,
        7,
        Severity.ERROR,
        "neither pkg:NAME nor",
    ),
    Fault("toml-otval", toml("[metadata]", "otval = 3"), PATH, 7, Severity.ERROR, "no table"),
    Fault("toml-resource-unit", toml("[environment]", "storage_mb = 10737418240"), PATH, 7, W),
    Fault("toml-resources-absent", toml("[environment]", "storage_mb = 1024"), PATH, 6, INFO),
    Fault("toml-gpu-types", toml("[environment]", "gpus = 1", 'gpu_types = ["H100_SXM"]'), PATH, 8, W, "H100_SXM"),
    Fault("toml-gpu-types", toml("[environment]", 'gpu_types = ["H100"]'), PATH, 7, W, "no GPU"),
    Fault(
        "toml-network-promised",
        {**toml(*OFFLINE), "instruction.md": "Write 42 to /app/a.txt.\nYou have internet access.\n"},
        "instruction.md",
        2,
        W,
    ),
]

NEAR_MISSES: list[tuple[str, dict[str, object]]] = [
    ("toml-name-folder", toml("[task]", 'name = "org/dataset-task"')),
    ("toml-otval", toml("[metadata.otval]", 'isolation = "masked"', 'keep = ["pkg:numpy", "/opt/x/"]', 'more = "x"')),
    ("toml-name-folder", toml("[task]", 'name = "org/Ta_sk"')),
    (
        "toml-template-default",
        toml("[metadata]", 'author_name = "Jane Q. Doe"', 'author_email = "jane@example.org"', 'tags = ["TODO"]'),
    ),
    ("toml-agent-below-verifier", toml(agent="120", verifier="120")),
    ("toml-agent-below-verifier", {PATH: "[agent]\ntimeout_sec = 60\n"}),
    ("toml-time-unit", toml(agent="15", verifier="5")),
    ("toml-time-unit", toml(agent="172800")),
    (
        "toml-time-estimates",
        toml("[metadata]", "expert_time_estimate_min = 60", "junior_time_estimate_min = 60.0"),
    ),
    ("toml-time-estimates", toml("[metadata]", "expert_time_estimate_min = 60", 'junior_time_estimate_min = "?"')),
    ("toml-resource-unit", toml("[environment]", "cpus = 0.5", "memory_mb = 128", "storage_mb = 2000000", "gpus = 8")),
    ("toml-resources-absent", toml("[environment]", "cpus = 1")),
    ("toml-gpu-types", toml("[environment]", "gpus = 1", 'gpu_types = ["nvidia-h100-80gb", "A100-80GB"]')),
    ("toml-gpu-types", toml("[environment]", "gpus = 0", "gpu_types = []")),
    ("toml-network-promised", {"instruction.md": "You have internet access. Write 42 to /app/a.txt.\n"}),
    (
        "toml-network-promised",
        {**toml(*OFFLINE), "instruction.md": "The log says `you have internet access`. Say why in /app/a.txt.\n"},
    ),
]
