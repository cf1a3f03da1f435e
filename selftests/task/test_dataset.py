import datetime
import json
import os
from pathlib import Path

import pytest

from pytest_otval.core import Severity
from pytest_otval.task.dataset import Accepted, Dataset, DatasetSettings, KnownBad, dataset_folder, load_dataset

HARBOR = Path(__file__).parents[1] / "data" / "harbor"
GOLDEN = json.loads((HARBOR / "golden.json").read_text(encoding="utf-8"))["dataset"]
CASES = dict(
    block.split("\n", 1)
    for block in f"\n{(HARBOR / 'dataset.cases').read_text(encoding='utf-8')}".split("\n# --- ")[1:]
)
TODAY = datetime.date(2026, 1, 31)
HEAD = '[dataset]\nname = "org/set"\n'


def load(folder: Path, source: str) -> Dataset:
    (folder / "dataset.toml").write_text(source, encoding="utf-8")
    return load_dataset(folder, TODAY)


@pytest.mark.parametrize("name", CASES)
def test_a_file_that_harbor_refuses_has_a_finding(tmp_path: Path, name: str) -> None:
    assert bool(load(tmp_path, CASES[name]).findings) == ("error" in GOLDEN[name])


def test_without_a_file_there_are_defaults(tmp_path: Path) -> None:
    folder = tmp_path / "my-set"
    folder.mkdir()
    dataset = load_dataset(folder)
    assert (dataset.name, dataset.path, dataset.findings) == ("my-set", folder, ())
    assert dataset.settings == DatasetSettings(
        oracle="required",
        reward_key=None,
        oracle_min=1,
        noop_max=0,
        reward_range=(0, 1),
        isolation="fresh",
        known_bad={},
    )


def test_all_settings(tmp_path: Path) -> None:
    dataset = load(
        tmp_path,
        HEAD
        + """
        [otval]
        oracle = "none"
        reward_key = "passed"
        oracle_min = 0.9
        noop_max = 0.1
        reward_range = [-1, 2]
        isolation = "none"
        [otval.known_bad]
        one = {reason = "flaky", owner = "me", expires = 2026-01-31}
        [otval.accepted.bash-replaced]
        reason = "graded in place"
        owner = "me"
        expires = 2026-01-31
        """,
    )
    assert dataset.findings == ()
    assert dataset.settings == DatasetSettings(
        oracle="none",
        reward_key="passed",
        oracle_min=0.9,
        noop_max=0.1,
        reward_range=(-1, 2),
        isolation="none",
        known_bad={"one": KnownBad("flaky", "me", datetime.date(2026, 1, 31))},
        accepted={"bash-replaced": Accepted("graded in place", "me", datetime.date(2026, 1, 31))},
    )


def test_the_stages_that_fail_can_be_named(tmp_path: Path) -> None:
    entry = '[otval.known_bad]\none = {reason = "r", owner = "me", expires = 2026-01-31, stages = ["build", "noop"]}\n'
    dataset = load(tmp_path, HEAD + entry)
    assert dataset.findings == ()
    assert dataset.settings.known_bad["one"].stages == ("build", "noop")


@pytest.mark.parametrize("stages", ["[]", '"oracle"', "[1]", '[["oracle"]]', '[{oracle = ""}]'])
def test_other_stages_are_errors(tmp_path: Path, stages: str) -> None:
    entry = f'[otval.known_bad]\none = {{reason = "r", owner = "me", expires = 2026-01-31, stages = {stages}}}\n'
    dataset = load(tmp_path, HEAD + entry)
    assert dataset.settings.known_bad == {}
    (finding,) = dataset.findings
    assert (finding.check, finding.severity, finding.line) == ("ds-invalid", Severity.ERROR, 4)


def test_an_expired_entry_no_longer_applies_and_says_so(tmp_path: Path) -> None:
    entry = '[otval.known_bad]\none = {reason = "r", owner = "me", expires = 2026-01-30}\n'
    dataset = load(tmp_path, HEAD + entry)
    assert dataset.settings.known_bad == {}
    (finding,) = dataset.findings
    assert (finding.check, finding.severity, finding.line) == ("ds-known-bad-expired", Severity.WARNING, 4)
    assert "2026-01-30" in finding.message


def test_an_attack_is_no_longer_accepted_after_its_day(tmp_path: Path) -> None:
    dataset = load(tmp_path, HEAD + '[otval.accepted]\npth = {reason = "r", owner = "me", expires = 2026-01-30}\n')
    assert dataset.settings.accepted == {}
    (finding,) = dataset.findings
    assert (finding.check, finding.severity, finding.line) == ("ds-accepted-expired", Severity.WARNING, 4)


@pytest.mark.parametrize(
    ("table", "check", "line", "text"),
    [
        ("[otval]\nnoop_mx = 0\n", "ds-unknown-field", 4, "`noop_max`"),
        ("[otval]\nzzz = 0\n", "ds-unknown-field", 4, "known are oracle, reward_key"),
        ("[otval]\noracle = true\n", "ds-invalid", 4, "required"),
        ("[otval]\noracle = ['none']\n", "ds-invalid", 4, "required"),
        ("[otval]\nreward_key = ''\n", "ds-invalid", 4, "reward.json"),
        ("[otval]\noracle_min = '1'\n", "ds-invalid", 4, "number"),
        ("[otval]\nnoop_max = nan\n", "ds-invalid", 4, "number"),
        ("[otval]\nnoop_max = true\n", "ds-invalid", 4, "number"),
        ("[otval]\nreward_range = [1, 0]\n", "ds-invalid", 4, "lowest"),
        ("[otval]\nreward_range = [0, 1, 2]\n", "ds-invalid", 4, "lowest"),
        ("[otval]\nreward_range = 1\n", "ds-invalid", 4, "lowest"),
        ("[otval]\nisolation = 'some'\n", "ds-invalid", 4, "fresh"),
        ("[otval.known_bad]\na = 'flaky'\n", "ds-invalid", 4, "reason"),
        ("[otval.known_bad]\na = {reason = 'x', owner = 'y'}\n", "ds-invalid", 4, "expires"),
        ("[otval.known_bad]\na = {reason = 'x', owner = 'y', expires = '2030-01-01'}\n", "ds-invalid", 4, "date"),
        ("[otval.known_bad]\na = {reason = '', owner = 'y', expires = 2030-01-01}\n", "ds-invalid", 4, "reason"),
        ("[otval]\naccepted = ['a']\n", "ds-invalid", 4, "table"),
        ("[otval.accepted]\na = {reason = 'x', owner = 'y'}\n", "ds-invalid", 4, "expires"),
        (
            "[otval.accepted.a]\nreason = 'x'\nowner = 'y'\nexpires = 2030-01-01\nstages = []\n",
            "ds-unknown-field",
            7,
            "",
        ),
        ("[otval]\nknown_bad = ['a']\n", "ds-invalid", 4, "table"),
        (
            "[otval.known_bad.a]\nreason = 'x'\nowner = 'y'\nexpires = 2030-01-01\nuntil = 1\n",
            "ds-unknown-field",
            7,
            "",
        ),
    ],
)
def test_a_wrong_setting_is_an_error_on_its_line(tmp_path: Path, table: str, check: str, line: int, text: str) -> None:
    dataset = load(tmp_path, HEAD + table)
    (finding,) = dataset.findings
    assert (finding.check, finding.severity, finding.line) == (check, Severity.ERROR, line)
    assert text in str(finding)
    assert finding.path == "dataset.toml"


def test_otval_must_be_a_table(tmp_path: Path) -> None:
    (finding,) = load(tmp_path, f"otval = 1\n{HEAD}").findings
    assert (finding.check, finding.line) == ("ds-invalid", 1)


@pytest.mark.parametrize("kind", ["link", "fifo", "folder", "binary", "nested"])
def test_an_unreadable_file_is_a_finding(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "dataset.toml"
    if kind == "link":
        path.symlink_to("/etc/hostname")
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.write_bytes(b"\xff\x00" if kind == "binary" else b"a = " + b"[" * 5000)
    dataset = load_dataset(tmp_path)
    assert dataset.settings == DatasetSettings()
    assert [finding.severity for finding in dataset.findings] == [Severity.ERROR]


def test_a_name_that_cannot_stand_in_a_node_id_is_an_error(tmp_path: Path) -> None:
    folder = tmp_path / "my set"
    folder.mkdir()
    assert [finding.check for finding in load_dataset(folder).findings] == ["ds-name"]


@pytest.mark.parametrize(
    ("task", "dataset"), [("set/tasks/one", "set"), ("set/one", "set"), ("tasks/one", "."), ("set/tasks", "set")]
)
def test_the_dataset_of_a_lone_task(tmp_path: Path, task: str, dataset: str) -> None:
    assert dataset_folder(tmp_path / task) == tmp_path / dataset


def test_the_dataset_of_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one").mkdir()
    monkeypatch.chdir(tmp_path / "one")
    assert dataset_folder(Path(".")) == tmp_path
