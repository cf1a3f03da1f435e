"""[[otval.allow]] of dataset.toml."""

import datetime

import pytest

from pytest_otval.core import Severity
from pytest_otval.task.dataset import load_dataset

GOOD = 'check = "text-crlf"\ntasks = "win-*"\nreason = "they are for Windows"\nowner = "ann"\nexpires = 2030-01-31\n'
TODAY = datetime.date(2030, 1, 31)
HEAD = '[dataset]\nname = "org/data"\n'


def load(folder, text, today=TODAY):
    (folder / "dataset.toml").write_text(HEAD + text)
    return load_dataset(folder, today)


def test_entries_are_read_with_their_lines(tmp_path):
    dataset = load(tmp_path, f"[[otval.allow]]\n{GOOD}[[otval.allow]]\n{GOOD.replace('win-*', 'one')}")
    first, second = dataset.settings.allow
    assert (first.check, first.line, second.line) == ("text-crlf", 3, 9)
    assert [one.covers("win-7") for one in (first, second)] == [True, False]
    assert [one.names_one for one in (first, second)] == [False, True]
    assert str(first) == "dataset.toml:3 (ann until 2030-01-31)"
    assert dataset.findings == ()


@pytest.mark.parametrize(
    ("text", "check", "severity", "line"),
    [
        (f"[[otval.allow]]\n{GOOD.replace('2030-01-31', '2030-01-30')}", "allow-expired", Severity.WARNING, 3),
        (
            f"[[otval.allow]]\n{GOOD.replace('they are for Windows', ' ')}",
            "allow-no-reason",
            Severity.WARNING,
            3,
        ),
        (f"[[otval.allow]]\n{GOOD.replace('reason', 'reasons')}", "ds-unknown-field", Severity.ERROR, 6),
        (f"[[otval.allow]]\n{GOOD.replace('owner', '# owner')}", "ds-invalid", Severity.ERROR, 3),
        (f"[[otval.allow]]\n{GOOD.replace('2030-01-31', '1')}", "ds-invalid", Severity.ERROR, 3),
        ("[otval]\nallow = [1]\n", "ds-invalid", Severity.ERROR, 4),
    ],
)
def test_a_bad_entry_is_a_finding_and_allows_nothing(tmp_path, text, check, severity, line):
    dataset = load(tmp_path, text)
    (found,) = dataset.findings
    assert (found.check, found.severity, found.line) == (check, severity, line)
    assert dataset.settings.allow == ()


def test_without_a_reason_it_says_so_even_where_the_key_is_missing(tmp_path):
    (found,) = load(tmp_path, f"[[otval.allow]]\n{GOOD.replace('reason', '# reason')}").findings
    assert found.check == "allow-no-reason"


def test_one_table_is_one_entry(tmp_path):
    assert len(load(tmp_path, f"[otval.allow]\n{GOOD}").settings.allow) == 1


@pytest.mark.parametrize("metadata", ['[metadata.harbor]\nlint = "x"\n', "[metadata]\nharbor = 1\n", ""])
def test_harbors_lint_table_may_be_anything(tmp_path, metadata):
    assert load(tmp_path, metadata).settings.harbor_lint == {}


def test_harbors_lint_table_is_kept(tmp_path):
    dataset = load(tmp_path, '[metadata.harbor.lint]\nignore = ["root-agent"]\n[otval]\noracle = "none"\n')
    assert dataset.settings.harbor_lint == {"ignore": ["root-agent"]}
    assert dataset.settings.oracle == "none"
