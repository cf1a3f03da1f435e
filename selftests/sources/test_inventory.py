"""The inventory: what its table says, and the command that writes it."""

import os
from pathlib import Path

import pytest

from pytest_otval.__main__ import main
from pytest_otval.core import OtvalUsageError
from pytest_otval.sources.inventory import inventory_lines
from pytest_otval.sources.validated import RECORD, Faults, Validated, write_record
from selftests.report.ledgers import line, make_run

CHECKOUT = Path(__file__).parents[2]
README = "# Mine\n\n<!-- inventory -->\n<!-- /inventory -->\n\nend\n"


@pytest.fixture
def datasets(tmp_path):
    folder = tmp_path / "checkout" / "datasets"
    (folder / "demo" / "tasks" / "a").mkdir(parents=True)
    (folder / "demo" / "tasks" / "a" / "task.toml").touch()
    (folder / "demo" / "dataset.toml").write_text('[otval.source]\nkind = "local"\npath = "there"\nlicence = "MIT"\n')
    (folder / "inventory.toml").write_text(
        '[later]\nsource = "hub"\npublished = 12345\npriority = 1\nmissing = "time"\n'
    )
    (folder / "README.md").write_text(README)
    return folder


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    folder = tmp_path / "ws"
    (folder / "contracts").mkdir(parents=True)
    monkeypatch.setenv("OT_WORKSPACE", str(folder))
    return folder


def rows(datasets, name):
    (row,) = [one for one in inventory_lines(datasets) if one.startswith((f"| [{name}]", f"| {name} |"))]
    return [cell.strip() for cell in row.strip("|").split(" | ")]


def command(datasets, *words):
    return main(["dataset", "inventory", "--datasets", str(datasets), *words])


def test_a_row_tells_source_tasks_and_why_nothing_was_validated(datasets):
    assert rows(datasets, "demo") == [
        *("demo", "there", "MIT", "not known", "none"),
        *("not validated here: nothing was asked yet", "not known"),
    ]
    assert rows(datasets, "later") == ["later", "1", "hub", "12,345 as published", "", "time"]


def test_the_reason_is_what_the_status_of_its_readme_says(datasets):
    text = "# Demo\n\n## Status\n\nConverted. **Oracle is not\nvalidated here**: no `image`.\n\nMore.\n"
    (datasets / "demo" / "README.md").write_text(text)
    assert rows(datasets, "demo")[0] == "[demo](demo/README.md)"
    assert rows(datasets, "demo")[5] == "Converted. Oracle is not validated here: no image."


def test_a_row_tells_answers_and_faults(datasets):
    stages = {
        "static": {"pass": 12},
        "build": {"pass": 12},
        "oracle": {"pass": 5, "fail": 2, "known bad": 1, "n/a": 3, "blocked": 1},
        "noop": {"pass": 9},
    }
    faults = {"wrong-reward": Faults(count=4, such_as=("a", "b", "c"))}
    write_record(datasets / "demo", Validated(tasks=1200, asked="2026-02-01", stages=stages, faults=faults))
    bad = (
        'x = {reason = "r", owner = "o", expires = 2020-01-31}\ny = {reason = "r", owner = "o", expires = 2030-01-31}\n'
    )
    with (datasets / "demo" / "dataset.toml").open("a") as file:
        file.write(f"[otval.known_bad]\n{bad}[otval.accepted]\n{bad}")
    assert rows(datasets, "demo")[3:] == [
        "1,200",
        "none",
        "static 12/12, build 12/12, oracle 5/9 (1 blocked, 1 known bad, 3 n/a), noop 9/9 (2026-02-01)",
        "2 known bad (the first expires 2020-01-31); 2 accepted attacks (the first expires 2020-01-31); "
        "4 wrong-reward (a, b, c, ...)",
    ]


def test_stages_that_were_not_asked_are_told_with_the_reason(datasets):
    write_record(datasets / "demo", Validated(tasks=3, asked="2026-02-01", stages={"static": {"pass": 3}}))
    (datasets / "inventory.toml").write_text('[demo]\nmissing = "no registry"\n')
    told = "static 3/3 (2026-02-01); build, oracle, noop not validated here: no registry"
    assert rows(datasets, "demo")[5:] == [told, "not known"]


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ('kind = "huggingface"\nrepository = "org/set"\nrevision = "0123456789abcdef"', "org/set at 0123456789ab"),
        ('kind = "git"\nurl = "https://x.org/r"\ncommit = "fedcba9876543210"', "https\\://x.org/r at fedcba987654"),
        ('kind = "upstream"\nname = "bugsinpy"', "https\\://github.com/soarsmu/BugsInPy at 11c5f1eea954"),
        ('kind = "upstream"\nname = "gone"', "gone"),
        ('kind = "index"', "index"),
        ("kind = 7", "7"),
        ("", ""),
    ],
)
def test_sources_are_told_by_address_and_pin(source, told, datasets):
    (datasets / "demo" / "dataset.toml").write_text(f"[otval.source]\n{source}\n")
    assert rows(datasets, "demo")[1] == told


@pytest.mark.parametrize("toml", ["otval = 3", "otval = {source = 3}", "= broken", "[otval.source]\nlicence = 3"])
def test_a_wrong_dataset_toml_is_no_crash(toml, datasets):
    (datasets / "demo" / "dataset.toml").write_text(toml)
    assert rows(datasets, "demo")[0] == "demo"


def test_hostile_names_are_texts(datasets):
    evil = "<b>|](x)\n\x1b[2J@all"
    (datasets / "inventory.toml").write_text('["<i>|"]\nsource = "[a](javascript:b)\\n| x |"\n')
    (datasets / "[x](y)").mkdir()
    (datasets / "[x](y)" / "dataset.toml").write_text('[otval.source]\nkind = "local"\npath = "a|b"\n')
    faults = {"wrong-reward": Faults(count=1, such_as=(evil,))}
    stages = {evil: {"pass": 1}}
    write_record(datasets / "demo", Validated(tasks=1, asked=evil, stages=stages, faults=faults))
    text = "\n".join(inventory_lines(datasets))
    assert not [char for char in text if char != "\n" and not char.isprintable()]
    unescaped = text.replace("\\\\", "").replace("\\<", "").replace("\\[", "").replace("\\|", "").replace("\\@", "")
    assert "<" not in unescaped and "@" not in unescaped and unescaped.count("[") == 0
    assert {line.replace("\\|", "").count("|") for line in text.splitlines() if line} == {0, 7, 8}


@pytest.mark.parametrize("toml", ["[x]\npriority = 4\n", "[x]\nnot_there = 1\n", "x = 1\n", "= broken"])
def test_a_wrong_inventory_toml_is_refused(toml, datasets):
    (datasets / "inventory.toml").write_text(toml)
    with pytest.raises(OtvalUsageError, match=r"inventory\.toml"):
        list(inventory_lines(datasets))


def test_a_pipe_is_no_inventory(datasets):
    (datasets / "inventory.toml").unlink()
    os.mkfifo(datasets / "inventory.toml")
    with pytest.raises(OtvalUsageError, match="cannot be read"):
        list(inventory_lines(datasets))


def test_the_command_prints_writes_and_checks(datasets, workspace, capsys):
    make_run(workspace / "runs" / "1", line("a"))
    assert command(datasets) == 0
    assert "oracle 1/1 (2026-01-01)" in capsys.readouterr().out
    assert (datasets / "README.md").read_text() == README
    assert command(datasets, "--check") == 1
    assert command(datasets, "--write") == 0
    text = (datasets / "README.md").read_text()
    assert text.startswith("# Mine\n\n<!-- inventory -->\n\n| dataset |") and text.endswith(
        "<!-- /inventory -->\n\nend\n"
    )
    assert "oracle 1/1 (2026-01-01)" in text
    assert command(datasets, "--check") == 0


def test_a_check_needs_no_workspace(datasets, monkeypatch, capsys):
    monkeypatch.delenv("OT_WORKSPACE", raising=False)
    assert command(datasets, "--check") == 1
    assert "is out of date: python -m pytest_otval dataset inventory --write" in capsys.readouterr().err


def test_more_answers_are_replaced_by_fewer_only_where_it_is_asked(datasets, workspace, capsys):
    write_record(datasets / "demo", Validated(tasks=9, asked="2026-02-01", stages={"oracle": {"pass": 9}}))
    make_run(workspace / "runs" / "1", line("a"))
    before = (datasets / "demo" / RECORD).read_bytes()
    assert command(datasets, "--write") == 0
    assert "9 answers are recorded, this workspace has 1" in capsys.readouterr().err
    assert (datasets / "demo" / RECORD).read_bytes() == before
    assert command(datasets, "--write", "demo") == 0
    assert rows(datasets, "demo")[5].startswith("oracle 1/1 (2026-01-01); static, build, noop not validated here")


@pytest.mark.parametrize("name", ["demo", "unknown"])
def test_a_name_without_answers_is_refused(name, datasets, workspace, capsys):
    assert command(datasets, "--write", name) == 4
    assert f"this workspace has no answer about '{name}'" in capsys.readouterr().err


def test_elsewhere_it_says_what_is_missing(tmp_path, workspace, capsys):
    assert command(tmp_path / "nothing") == 4
    assert "run it in the checkout" in capsys.readouterr().err


def test_the_inventory_of_this_repository_is_up_to_date():
    assert command(CHECKOUT / "datasets", "--check") == 0
