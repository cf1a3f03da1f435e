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
