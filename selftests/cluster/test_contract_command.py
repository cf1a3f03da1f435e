"""``python -m pytest_otval contract`` over real tasks; no container is started but for the probe, which is faked."""

# ruff: noqa: F811 - fixtures

import pytest

from pytest_otval.__main__ import main
from pytest_otval.cluster import contract_changes
from pytest_otval.contract.file import read_contract
from selftests.glue.conftest import ids, project  # noqa: F401

pytest_plugins = ["pytester"]


@pytest.fixture
def contract(project, monkeypatch):
    """A contract of two tasks, and the folder they lie in as the current one."""
    folder = project.dataset()
    for task in ("a", "b"):
        (folder / "tasks" / task / "environment").mkdir()
        (folder / "tasks" / task / "environment" / "Dockerfile").write_text("FROM debian:bookworm-slim\n")
    path = project.root / "c.json"
    # The stub's way of mapping uids.
    monkeypatch.setattr(contract_changes, "probe_flavour", lambda workspace, profile: ("userns", []))
    outcome = project.run(f"--otval-prepare-contract={path}", "datasets/demo", "-m", "oracle or noop")
    assert outcome.status == 0, outcome.errors
    monkeypatch.chdir(project.root)
    return path


def said(capsys, *args):
    capsys.readouterr()
    status = main(["contract", *map(str, args)])
    return status, capsys.readouterr().out.splitlines()


def test_show(contract, capsys):
    status, lines = said(capsys, "show", contract)
    assert status == 0
    assert lines[1] == "demo: 2 tasks: oracle 2, noop 2"
    assert "1 images over 1 bases" in lines
    assert "  n/a is expected 2 times: no-solution" in lines
    assert said(capsys, "show", contract, "--node-ids") == (0, ids("a", "b", stages=("oracle", "noop")))


def test_nothing_changed(contract, capsys):
    assert said(capsys, "verify", contract) == (0, ["nothing changed"])
    assert said(capsys, "diff", contract) == (0, ["nothing changed", "nothing has to run again"])
    assert said(capsys, "update", contract) == (0, [f"{contract} holds as it is"])


def test_a_changed_file_is_named_and_taken_over_when_accepted(contract, project, capsys):
    (project.root / "datasets/demo/tasks/a/x").write_text("x")
    before = contract.read_bytes()
    assert said(capsys, "verify", contract) == (1, ["tasks: demo/a: x is new"])
    status, lines = said(capsys, "diff", contract)
    assert (status, lines[0]) == (0, "tasks: demo/a: x is new")
    assert lines[1] == "2 items have to run again; how long that takes is not known"
    status, lines = said(capsys, "update", contract)
    assert status == 1
    assert lines[-1] == "nothing was changed: to take all of this over, say --accept tasks"
    assert contract.read_bytes() == before
    status, lines = said(capsys, "update", contract, "--accept", "tasks")
    assert status == 0
    assert lines[-1] == f"{contract} is up to date: digest {read_contract(contract).digest}"
    assert said(capsys, "verify", contract) == (0, ["nothing changed"])


def test_two_contracts_are_compared_by_file(contract, project, capsys):
    (project.root / "datasets/demo/tasks/a/x").write_text("x")
    other = project.root / "d.json"
    project.run(f"--otval-prepare-contract={other}", "datasets/demo", "-m", "oracle or noop")
    status, lines = said(capsys, "diff", contract, other)
    assert (status, lines[0]) == (0, "tasks: demo/a: x is new")


def test_a_task_that_is_gone_is_told(contract, project, capsys):
    folder = project.root / "datasets/demo/tasks/a"
    folder.rename(project.root / "elsewhere")
    assert said(capsys, "verify", contract) == (1, ["tasks: demo/a: is gone"])
    assert said(capsys, "update", contract, "--accept", "tasks")[0] == 0
    assert said(capsys, "show", contract, "--node-ids")[1] == ids("b", stages=("oracle", "noop"))


def test_what_a_run_found_not_to_apply_can_be_expected(contract, project, capsys):
    (project.root / "datasets/demo/tasks/a/wanted/noop").write_text("no-gpu")
    assert said(capsys, "update", contract, "--accept", "tasks")[0] == 0
    assert project.run(f"--otval-contract={contract}").status == 1
    assert said(capsys, "update", contract, "--outcomes", project.runs[-1])[0] == 0
    assert read_contract(contract).datasets["demo"].inapplicable["a"]["noop"] == "no-gpu"
    assert said(capsys, "update", contract)[1] == [f"{contract} holds as it is"]


def test_what_is_no_contract_is_told_in_one_line(project, capsys, tmp_path):
    (tmp_path / "c.json").write_text("{")
    for action in ("show", "diff", "verify", "update"):
        capsys.readouterr()
        assert main(["contract", action, str(tmp_path / "c.json")]) == 4
        assert len(capsys.readouterr().err.splitlines()) == 1
