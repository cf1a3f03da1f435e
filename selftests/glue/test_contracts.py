"""A run as a contract says: prepared, replayed, refused."""

import datetime
import importlib
import os

import pytest

from pytest_otval.contract.file import read_contract
from pytest_otval.contract.model import ImagePin
from pytest_otval.images.model import ImageConfig
from pytest_otval.images.record import Record, image_path, write_record
from selftests.glue.conftest import ids

pytest_plugins = ["pytester"]


@pytest.fixture
def contract(project):
    return project.root / "c.json"


def prepare(project, contract, *args):
    outcome = project.run(f"--otval-prepare-contract={contract}", *(args or ("datasets/demo",)))
    assert outcome.status == 0, outcome.lines + outcome.errors
    assert not project.runs[-1].exists(), "a run folder was made"
    return outcome


def replay(project, contract, *args, process=False):
    return (project.process if process else project.run)(f"--otval-contract={contract}", *args)


def test_it_fixes_what_a_run_would_do(project, contract):
    project.dataset()
    outcome = prepare(project, contract)
    assert any("9 items of 2 tasks" in line for line in outcome.lines)
    again = replay(project, contract)
    assert again.status == 0
    assert set(project.ledger()) == {*ids("a", "b"), "datasets/demo/dataset.toml::static"}
    assert replay(project, contract, "--co", "-q").ids == ["datasets/demo/dataset.toml::static", *ids("a", "b")]


@pytest.mark.parametrize("count", [0, 2])
def test_the_same_with_and_without_workers(project, contract, count):
    project.dataset()
    prepare(project, contract, "datasets/demo", "-m", "oracle or noop")
    outcome = replay(project, contract, "-n", str(count), process=True)
    assert outcome.status == 0, outcome.lines + outcome.errors
    assert set(project.ledger()) == set(ids("a", "b", stages=("oracle", "noop")))


def test_no_worker_is_needed_to_prepare_it(project, contract):
    project.dataset()
    outcome = project.process(f"--otval-prepare-contract={contract}", "datasets/demo", "-n", "2")
    assert outcome.status == 0, outcome.lines + outcome.errors
    assert read_contract(contract).count == 9


def test_shards_share_it(project, contract):
    project.dataset(tasks={name: {} for name in "abcde"})
    prepare(project, contract, "datasets/demo", "-m", "oracle")
    found = []
    for shard in ("1/2", "2/2"):
        assert replay(project, contract, "--otval-shard", shard).status == 0
        found += project.ledger()
    assert sorted(found) == ids(*"abcde", stages=("oracle",))


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["-k", "a"], "-k"),
        (["-m", "oracle"], "-m"),
        (["--lf"], "--lf"),
        (["--deselect", "x"], "--deselect"),
        (["--otval-limit", "1"], "--otval-limit"),
        (["--otval-tasks", "a"], "--otval-tasks"),
        (["--otval-fix"], "--otval-fix"),
        (["datasets/demo"], "datasets/demo"),
        (["--otval-rules", "strict"], "--otval-rules"),
        (["--otval-repeat", "2"], "--otval-repeat"),
    ],
)
def test_other_choices_are_refused(project, contract, words, option):
    project.dataset()
    prepare(project, contract)
    refusal = replay(project, contract, *words).refusal
    assert refusal.startswith("--otval-contract fixes") and option in refusal


def test_settings_come_from_it(project, contract):
    project.dataset(tasks={"a": {"oracle": "expected|expected|wrong-reward"}})
    prepare(project, contract, "datasets/demo", "-m", "oracle", "--otval-repeat", "3", "--otval-rules", "strict")
    # As a process: scipy cannot be imported twice.
    assert replay(project, contract, process=True).status == 1
    (line,) = project.ledger().values()
    assert line["attempts"]["count"] == 3
    from pytest_otval.settings import VerdictSettings

    assert line["settings_digest"] == VerdictSettings(rules="strict", flavour="userns").digest()


def byte(task):
    (task / "task.toml").write_text((task / "task.toml").read_text() + " ")


def exec_bit(task):
    (task / "task.toml").chmod(0o755)


def ignored_file(task):
    (task / "environment").mkdir()
    (task / ".gitignore").write_text("*.log\n")
    (task / "environment" / "x.log").write_text("x")


def setup_byte(task):
    (task / "setup_files").mkdir()
    (task / "setup_files" / "x").write_text("x")


def gone(task):
    for path in sorted(task.rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    task.rmdir()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (byte, "drift: tasks: demo/a: task.toml changed"),
        (exec_bit, "drift: tasks: demo/a: task.toml may be executed now"),
        (ignored_file, "drift: tasks: demo/a: .gitignore is new, environment/x.log is new"),
        (setup_byte, "drift: tasks: demo/a: setup_files/x is new"),
    ],
)
def test_drift_is_refused_before_anything_runs_and_named_by_file(project, contract, change, words):
    folder = project.dataset()
    prepare(project, contract)
    change(folder / "tasks" / "a")
    outcome = replay(project, contract)
    assert "no longer holds: 1 differences (tasks 1)" in outcome.refusal
    assert words in outcome.lines
    assert not project.runs[-1].exists()


def test_a_task_that_is_gone_is_refused(project, contract):
    folder = project.dataset()
    prepare(project, contract)
    gone(folder / "tasks" / "a")
    assert replay(project, contract).status == 4


def test_where_the_workspace_does_not_know_its_files_the_task_is_named(project, contract):
    folder = project.dataset()
    prepare(project, contract)
    for file in (project.workspace / "contracts").iterdir():
        file.unlink()
    byte(folder / "tasks" / "a")
    assert "drift: tasks: demo/a: changed" in replay(project, contract).lines


def test_a_changed_dataset_toml_is_drift(project, contract):
    folder = project.dataset()
    prepare(project, contract)
    (folder / "dataset.toml").write_text('[dataset]\nname = "org/demo"\n[otval]\nnoop_max = 0.5\n')
    assert "drift: datasets: demo: its dataset.toml changed" in replay(project, contract).lines


BAD = '[otval.known_bad.a]\nreason = "typo"\nowner = "me"\nexpires = {expires}\n'


def test_known_bad_is_expected_and_a_pass_is_not(project, contract):
    folder = project.dataset(tasks={"a": {"oracle": "wrong-reward"}}, otval=BAD.format(expires="2999-01-01"))
    prepare(project, contract, "datasets/demo", "-m", "oracle")
    assert (
        '"a": {"reason": "typo", "owner": "me", "expires": "2999-01-01", "stages": ["oracle"]}' in contract.read_text()
    )
    assert replay(project, contract).status == 0
    (folder / "tasks" / "a" / "wanted" / "oracle").write_text("expected")
    prepare(project, contract, "datasets/demo", "-m", "oracle")
    assert replay(project, contract).status == 1


def test_an_expectation_that_has_expired_is_drift(project, contract, monkeypatch):
    project.dataset(otval=BAD.format(expires="2999-01-01"))
    prepare(project, contract)
    # pytester forgets modules that a run imported.
    drift = importlib.import_module("pytest_otval.contract.drift")
    real = drift.expired
    monkeypatch.setattr(drift, "expired", lambda contract, today: real(contract, datetime.date(3000, 1, 1)))
    outcome = replay(project, contract)
    assert outcome.status == 4
    assert any("applied until 2999-01-01 (me: typo)" in line for line in outcome.lines)


def test_na_that_was_not_foreseen_is_not_green(project, contract):
    project.dataset(tasks={"a": {"noop": "no-gpu"}, "b": {}})
    prepare(project, contract, "datasets/demo", "-m", "noop")
    outcome = replay(project, contract)
    assert outcome.status == 1
    assert f"contract: {ids('a', stages=('noop',))[0]}: n/a no-gpu is not expected" in outcome.lines


def test_na_that_the_files_foretell_is_expected_and_green(project, contract):
    """The task has no solution."""
    folder = project.dataset(tasks={"a": {"oracle": "no-solution"}})
    (folder / "tasks" / "a" / "environment").mkdir()
    (folder / "tasks" / "a" / "environment" / "Dockerfile").write_text("FROM debian:bookworm-slim\n")
    prepare(project, contract, "datasets/demo", "-m", "oracle")
    assert '"inapplicable": {\n    "a": {"oracle": "no-solution"}' in contract.read_text()
    assert replay(project, contract).status == 0
    (folder / "tasks" / "a" / "wanted" / "oracle").write_text("expected")
    prepare(project, contract, "datasets/demo", "-m", "oracle")
    outcome = replay(project, contract)
    assert outcome.status == 1
    assert any("unexpected pass: the contract says n/a no-solution" in line for line in outcome.lines)


def test_errors_are_no_answer(project, contract):
    project.dataset(tasks={"a": {"noop": "no-start"}, "b": {}})
    prepare(project, contract, "datasets/demo", "-m", "noop")
    assert replay(project, contract).status == 8


def test_what_was_not_run_is_told(project, contract):
    project.dataset(tasks={"a": {"noop": "wrong-reward"}, "b": {}})
    prepare(project, contract, "datasets/demo", "-m", "noop")
    outcome = replay(project, contract, "-x")
    assert outcome.status == 1
    assert "contract: 1 of 2 items were not run" in outcome.lines


def test_a_conftest_that_takes_items_away_is_told(project, contract):
    project.dataset()
    prepare(project, contract)
    project.pytester.makeconftest("def pytest_collection_modifyitems(items): del items[0]")
    assert "1 items of the contract were not collected" in replay(project, contract).refusal


def test_items_of_others_cannot_be_in_it(project, contract):
    project.dataset()
    project.pytester.makepyfile(test_x="def test_y(): pass")
    refusal = project.run(f"--otval-prepare-contract={contract}", "datasets/demo", "test_x.py").refusal
    assert "test_x.py::test_y is no stage of a task" in refusal


def test_selection_that_leaves_tasks_out_is_told(project, contract):
    project.dataset(tasks={name: {} for name in "abcde"})
    prepare(project, contract, "datasets/demo", "--otval-limit", "2")
    assert '"3 tasks": "not selected by: ' in contract.read_text()


def test_a_dataset_given_by_path_is_found_again(project, contract, tmp_path):
    folder = project.dataset("far", at=tmp_path / "elsewhere")
    prepare(project, contract, folder)
    assert replay(project, contract).status == 0
    os.rename(folder, tmp_path / "moved")
    assert "dataset far of the contract is not here" in replay(project, contract).refusal


def test_without_containers_only_a_contract_of_files_can_be_made(project, contract, monkeypatch):
    project.dataset()
    monkeypatch.setenv("STUB_TROUBLE", "missing-tool")
    refusal = project.run(f"--otval-prepare-contract={contract}", "datasets/demo").refusal
    assert refusal == "no contract without containers: no containers here"
    monkeypatch.delenv("STUB_TROUBLE")
    prepare(project, contract)
    monkeypatch.setenv("STUB_TROUBLE", "missing-tool")
    assert replay(project, contract).refusal == "no contract without containers: no containers here"


def test_a_shard_without_a_contract_is_refused(project):
    project.dataset()
    assert "--otval-shard is a part of a contract" in project.run("datasets/demo", "--otval-shard", "1/2").refusal


def test_images_can_be_fixed_by_their_bytes(project, contract, monkeypatch):
    """The image is put there by hand: nothing is built here."""
    folder = project.dataset(tasks={"a": {}})
    (folder / "tasks" / "a" / "environment").mkdir()
    (folder / "tasks" / "a" / "environment" / "Dockerfile").write_text("FROM debian:bookworm-slim\n")
    words = ["--otval-strict-images", "datasets/demo", "-m", "noop"]
    refusal = project.run(f"--otval-prepare-contract={contract}", *words).refusal
    assert refusal == "--otval-strict-images: the image of demo/a is not made yet: run `-m build` first"
    prepare(project, contract, "datasets/demo", "-m", "noop")
    (image,) = read_contract(contract).images
    content = "1" * 64

    def write(content):
        record = Record(image.key, content, image.base, 0, ImageConfig(), True)
        write_record(project.workspace / "images", record)
        image_path(project.workspace / "images", image.key).touch()

    write(content)
    prepare(project, contract, *words)
    assert read_contract(contract).images == (ImagePin(image.key, image.base, content),)
    assert replay(project, contract).status == 0
    write("2" * 64)
    assert "drift: images: demo/a: its image has other bytes" in replay(project, contract).lines


def test_drift_is_refused_with_workers_too(project, contract):
    folder = project.dataset()
    prepare(project, contract)
    byte(folder / "tasks" / "a")
    outcome = replay(project, contract, "-n", "2", process=True)
    assert outcome.status == 4
    assert "drift: tasks: demo/a: task.toml changed" in outcome.lines
    assert not project.runs[-1].exists()


def test_a_run_of_a_contract_goes_on(project, contract):
    project.dataset(tasks={"a": {"noop": "no-start"}, "b": {}})
    prepare(project, contract, "datasets/demo", "-m", "noop")
    assert replay(project, contract, "--otval-shard", "2/2").status == 0
    run = project.runs[-1]
    result = project.pytester.runpytest_inprocess("-p", "otval_stub", f"--otval-resume={run}", "--otval-shard=")
    assert int(result.ret) == 8
    assert "not asked again: 1 answers of this run" in result.outlines


def with_images(folder, *tasks):
    for task in tasks:
        (folder / "tasks" / task / "environment").mkdir()
        (folder / "tasks" / task / "environment" / "Dockerfile").write_text("FROM debian:bookworm-slim\n")


def test_a_shard_may_have_the_static_stage_alone(project, contract):
    with_images(project.dataset(tasks={"a": {}}), "a")
    prepare(project, contract, "datasets/demo/tasks/a", "-m", "static or noop")
    (contract.parent / "shards.json").write_text('{"v": 1, "shards": [[0], [1]]}')
    for shard in ("1/2", "2/2"):
        outcome = replay(project, contract, "--otval-shard", shard)
        assert outcome.status == 0, outcome.lines + outcome.errors


def test_a_shard_without_items_is_refused_and_runs_nothing_else(project, contract):
    project.dataset()
    prepare(project, contract, "datasets/demo", "-m", "noop")
    project.pytester.makepyfile(test_x="def test_y(): pass")
    assert replay(project, contract, "--otval-shard", "3/3").refusal.endswith("shard 3/3 has no item")
    (contract.parent / "shards.json").write_text('{"v": 1, "shards": [[99]]}')
    assert "is not of this contract" in replay(project, contract, "--otval-shard", "1/1").refusal


def test_a_task_that_changes_meanwhile_is_no_answer(project, contract):
    folder = project.dataset()
    prepare(project, contract, "datasets/demo", "-m", "noop")
    change = f"__import__('pathlib').Path({str(folder / 'tasks' / 'b' / 'task.toml')!r}).write_text('')"
    project.pytester.makeconftest(f"def pytest_runtest_logfinish(nodeid):\n    if '/a/' in nodeid:\n        {change}")
    outcome = replay(project, contract)
    assert outcome.status == 8
    assert project.ledger()[ids("b", stages=("noop",))[0]]["class"] == "changed"


def test_an_unexpected_pass_of_a_task_that_is_known_bad_is_told(project, contract):
    """It is known to be bad, and has no solution either."""
    folder = project.dataset(tasks={"a": {"oracle": "expected"}}, otval=BAD.format(expires="2999-01-01"))
    with_images(folder, "a")
    prepare(project, contract, "datasets/demo", "-m", "oracle")
    assert replay(project, contract).status == 1


def test_listing_it_is_no_run(project, contract):
    project.dataset()
    prepare(project, contract)
    assert replay(project, contract, "--co", "-q").status == 0


def test_it_may_be_named_by_a_link(project, contract):
    project.dataset()
    prepare(project, contract)
    (project.root / "latest.json").symlink_to(contract)
    assert replay(project, project.root / "latest.json").status == 0


def test_static_alone_needs_no_containers(project, contract, monkeypatch):
    project.dataset()
    monkeypatch.setenv("STUB_TROUBLE", "missing-tool")
    prepare(project, contract, "datasets/demo", "-m", "static")
    assert replay(project, contract).status == 0


@pytest.mark.parametrize("settings", [{"attacks": 5}, {"repeat": "x"}, {"rules": "bogus"}, {"surprise": 1}])
def test_settings_that_are_none_are_refused(project, contract, settings):
    import msgspec

    from pytest_otval.contract.file import sealed, write_contract

    project.dataset()
    prepare(project, contract, "datasets/demo", "-m", "static")
    write_contract(contract, sealed(msgspec.structs.replace(read_contract(contract), settings=settings)))
    assert replay(project, contract).status == 4


def test_without_its_image_a_strict_contract_is_refused_in_one_line(project, contract):
    test_images_can_be_fixed_by_their_bytes(project, contract, None)
    for file in (project.workspace / "images").glob("*.json"):
        file.unlink()
    assert "is not made yet" in replay(project, contract).refusal
