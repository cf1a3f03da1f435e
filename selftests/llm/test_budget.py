"""A budget that survives its processes."""

import os
import subprocess
import sys

import pytest

from pytest_otval.llm.budget import FOLDER, Budget, Spent
from pytest_otval.llm.chat import BudgetSpentError, Usage


def test_all_who_spend_are_counted_once(tmp_path):
    one, two = Budget(tmp_path, tokens=100), Budget(tmp_path, tokens=100)
    assert one.spent() == Spent()
    one.spend("a", Usage(10, 5, usd=0.5))
    two.spend("b", Usage(20))
    one.spend("a", Usage(1))
    for budget in (one, two, one, Budget(tmp_path)):
        assert budget.spent() == Spent(3, 36, 0.5)


def test_a_budget_in_money(tmp_path):
    budget = Budget(tmp_path, usd=1.0)
    budget.spend("a", Usage(10, usd=0.75))
    budget.require()
    budget.spend("a", Usage(10, usd=0.25))
    with pytest.raises(BudgetSpentError, match=r"the budget of 1 USD is spent: 1\.0000 USD were used"):
        budget.require()


def test_without_limits_nothing_is_read(tmp_path):
    (tmp_path / FOLDER).write_text("no folder")
    Budget(tmp_path).require()


def test_half_a_line_is_counted_when_its_end_comes(tmp_path):
    writer, reader = Budget(tmp_path), Budget(tmp_path, tokens=1)
    writer.spend("a", Usage(10))
    (file,) = (tmp_path / FOLDER).iterdir()
    whole = file.read_bytes()
    with file.open("ab") as other:
        other.write(whole[:9])
        other.flush()
        assert reader.spent().tokens == 10
        other.write(whole[9:])
    assert reader.spent().tokens == 20


def test_what_a_full_disk_left_half_spoils_no_other_line(tmp_path, monkeypatch):
    budget = Budget(tmp_path)
    write = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: write(handle, data[:7]))
    budget.spend("a", Usage(10))
    monkeypatch.undo()
    budget.spend("a", Usage(20))
    assert budget.spent() == Spent(1, 20, 0)


def test_a_killed_process_is_counted_and_a_resumed_run_goes_on(tmp_path):
    script = (
        "import os, sys; from pathlib import Path\n"
        "from pytest_otval.llm.budget import Budget; from pytest_otval.llm.chat import Usage\n"
        "budget = Budget(Path(sys.argv[1]))\n"
        "for _ in range(5): budget.spend('a', Usage(1))\n"
        "os.kill(os.getpid(), 9)"
    )
    for _ in range(2):
        assert subprocess.run([sys.executable, "-c", script, str(tmp_path)]).returncode == -9
    with pytest.raises(BudgetSpentError):
        Budget(tmp_path, tokens=10).require()


def test_what_is_carried_between_folders_counts_once_in_each(tmp_path):
    shared, nodes = tmp_path / "shared", (tmp_path / "n1", tmp_path / "n2")
    spenders = [Budget(node) for node in nodes]
    carriers = [(Budget(node), Budget(shared)) for node in nodes]

    def carry():
        for here, there in carriers:
            there.carry(here)
        for here, there in carriers:
            here.carry(there)

    spenders[0].spend("a", Usage(10, 5, usd=0.5))
    spenders[1].spend("a", Usage(20))
    for _ in range(3):
        carry()
    spenders[0].spend("a", Usage(100))
    for _ in range(2):
        carry()
    for folder in (shared, *nodes):
        assert Budget(folder).spent() == Spent(3, 135, 0.5)
    assert len(list((shared / FOLDER).iterdir())) == 2
    # A job that begins again has another folder, and its earlier life counts as any other job.
    here, there = Budget(tmp_path / "n3"), Budget(shared)
    there.carry(here)
    here.carry(there)
    assert here.spent() == there.spent() == Spent(3, 135, 0.5)


def test_what_a_full_disk_does_not_take_is_carried_later(tmp_path, monkeypatch):
    here, there = Budget(tmp_path / "here"), Budget(tmp_path / "there")
    Budget(tmp_path / "here").spend("a", Usage(10))
    write = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: write(handle, data[:7]))
    with pytest.raises(OSError, match="No space left"):
        there.carry(here)
    monkeypatch.undo()
    there.carry(here)
    assert there.spent() == Spent(1, 10, 0)
