"""Contracts as files: what is written is read again, and what is no contract is told in one line."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.contract.file import read_contract, sealed, write_contract
from pytest_otval.contract.model import Contract, DatasetPin, ImagePin, KnownBadPin, RuntimePin, Submission, TaskPin
from pytest_otval.contract.shard import items_of_shard
from pytest_otval.core import OtvalUsageError

A, B, C = ("a" * 64, "b" * 64, "c" * 64)
STAGES = (("static", "build", "oracle", "noop"), ("oracle",))


def contract(tasks=None, **values):
    tasks = {"one": TaskPin(A, (0,)), "two": TaskPin(B, (1, 0), 1)} if tasks is None else tasks
    pin = DatasetPin(settings=C, stages=STAGES, tasks=tasks, own=("static",))
    images = (ImagePin(A, "debian@sha256:1"), ImagePin(B, "debian@sha256:2"))
    usual = {"settings": {"rules": "strict"}, "uids": "mapped", "versions": {"python": "3.11"}, "images": images}
    return sealed(Contract(otval_contract=1, digest="", datasets={"demo": pin}, **{**usual, **values}))


def refusal(path):
    with pytest.raises(OtvalUsageError) as caught:
        read_contract(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def edited(tmp_path, change):
    """Write a contract whose content was changed, with a digest that fits."""
    values = msgspec.to_builtins(contract())
    change(values)
    from pytest_otval.contract.file import _digest

    values["digest"] = _digest(values)
    path = tmp_path / "c.json"
    path.write_text(json.dumps(values))
    return path


def test_what_is_written_is_read_again(tmp_path):
    whole = contract(
        runtimes=(RuntimePin("python-verifier-123456789abc", A, "/opt/venv"),),
        submission=Submission("helma", "cpu", 48, "02:00:00"),
        checks="0123",
    )
    path = tmp_path / "deep" / "c.json"
    write_contract(path, whole)
    assert read_contract(path) == whole
    write_contract(tmp_path / "again.json", read_contract(path))
    assert (tmp_path / "again.json").read_bytes() == path.read_bytes()


def test_items_are_in_the_order_of_collection():
    ids = [item.id for item in contract().items()]
    assert ids == [
        "datasets/demo/dataset.toml::static",
        *(f"datasets/demo/tasks/one/task.toml::{stage}" for stage in STAGES[0]),
        "datasets/demo/tasks/two/task.toml::oracle",
    ]
    assert len(ids) == contract().count
    assert [item.images for item in contract().items()][-1] == (B, A)


def test_a_task_is_one_line_of_at_most_120_bytes_beyond_its_name(tmp_path):
    few = {f"task-{number:05}": TaskPin(f"{number:064x}", (number % 2,), number % 2) for number in range(10)}
    many = {f"task-{number:05}": TaskPin(f"{number:064x}", (number % 2,), number % 2) for number in range(1010)}
    for name, tasks in (("few", few), ("many", many)):
        write_contract(tmp_path / name, contract(tasks))
    added = (tmp_path / "many").stat().st_size - (tmp_path / "few").stat().st_size
    assert added / 1000 - len("task-00000") <= 120
    lines = [line for line in (tmp_path / "many").read_text().splitlines() if "task-00007" in line]
    assert len(lines) == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "it is empty"),
        (b"{", "it is no JSON, perhaps cut off"),
        (b"[1]", "it has no `otval_contract`"),
        (b'{"otval_contract": true}', "it has no `otval_contract`"),
        (b'{"otval_contract": 2}', "contract format 2, and this version reads 1: update pytest-otval"),
        (b'{"otval_contract": 0}', "contract format 0"),
        (b'{"otval_contract": 1}', "missing required field"),
        (b"[" * 100_000, "it is no JSON"),
        (b"\xff\xfe{}", "it is no JSON"),
    ],
)
def test_what_is_no_contract_is_told_in_one_line(tmp_path, text, words):
    path = tmp_path / "c.json"
    path.write_bytes(text)
    assert words in refusal(path)


def test_no_file_a_folder_and_a_link_are_refused(tmp_path):
    assert "there is no contract" in refusal(tmp_path / "none.json")
    assert "cannot be read" in refusal(tmp_path)


def test_a_truncated_contract_is_refused(tmp_path):
    path = tmp_path / "c.json"
    write_contract(path, contract())
    whole = path.read_bytes()
    for length in range(0, len(whole) - 2, 37):
        path.write_bytes(whole[:length])
        assert "is no contract" in refusal(path)


def test_an_edited_contract_is_refused(tmp_path):
    path = tmp_path / "c.json"
    write_contract(path, contract())
    path.write_text(path.read_text().replace("strict", "harbor"))
    assert "was changed after it was made" in refusal(path)


@pytest.mark.parametrize("name", ["../../etc", "..", "a/b", "a\n", "", "x" * 300, "a\x1b[31m"])
def test_names_that_lead_elsewhere_are_refused_with_a_right_digest(tmp_path, name):
    def change(values):
        values["datasets"]["demo"]["tasks"][name] = [A, [], 0]

    assert "is no contract" in refusal(edited(tmp_path, change))

    def rename(values):
        values["datasets"][name] = values["datasets"].pop("demo")

    assert "is no contract" in refusal(edited(tmp_path, rename))


@pytest.mark.parametrize(
    "change",
    [
        lambda values: values["datasets"]["demo"].update(folder="/a/../../etc"),
        lambda values: values["datasets"]["demo"]["tasks"].update(one=[A, [9], 0]),
        lambda values: values["datasets"]["demo"]["tasks"].update(one=[A, [-1], 0]),
        lambda values: values["datasets"]["demo"]["tasks"].update(one=[A, [], 7]),
        lambda values: values["datasets"]["demo"]["tasks"].update(one=["short", [], 0]),
        lambda values: values.update(images=[["../../x", "base"]]),
        lambda values: values.update(surprise=1),
        lambda values: values["datasets"]["demo"].update(surprise=1),
    ],
)
def test_what_the_tables_lack_is_refused(tmp_path, change):
    assert "is no contract" in refusal(edited(tmp_path, change))


def test_a_part_has_the_stages_and_versions_of_its_items():
    whole = contract(checks="1", attacks="2", rubrics="3")
    items = list(whole.items())
    part = whole.only([0, 3, 5])
    assert [item.id for item in part.items()] == [items[0].id, items[3].id, items[5].id]
    assert (part.checks, part.attacks, part.rubrics, part.digest) == ("1", "", "", whole.digest)
    assert whole.only([]).count == 0


@given(st.integers(1, 9), st.lists(st.sampled_from([0, 1]), min_size=1, max_size=30))
def test_shards_have_each_item_once_and_tasks_whole(count, kinds):
    tasks = {f"t{number}": TaskPin(A, (0,), kind) for number, kind in enumerate(kinds)}
    whole = contract(tasks)
    from pathlib import Path

    shards = [items_of_shard(whole, Path("/nowhere"), f"{number}/{count}") for number in range(1, count + 1)]
    assert sorted(number for shard in shards for number in shard) == list(range(whole.count))
    owner = {}
    items = list(whole.items())
    for number, shard in enumerate(shards):
        for place in shard:
            assert owner.setdefault(items[place].task, number) == number


@pytest.mark.parametrize("shard", ["0/2", "3/2", "1", "a/b", "1/0", "-1/2", "1/2/3", "1/2\n"])
def test_what_is_no_shard_is_refused(tmp_path, shard):
    with pytest.raises(OtvalUsageError, match="write I/N"):
        items_of_shard(contract(), tmp_path, shard)


def test_a_plan_beside_the_contract_says_which_items_a_shard_has(tmp_path):
    (tmp_path / "shards.json").write_text('{"v": 1, "shards": [[0, 5], [1, 2, 3, 4]]}')
    assert items_of_shard(contract(), tmp_path, "1/2") == [0, 5]
    with pytest.raises(OtvalUsageError, match="has 2 shards"):
        items_of_shard(contract(), tmp_path, "1/3")
    (tmp_path / "shards.json").write_text("{")
    with pytest.raises(OtvalUsageError, match="is no plan of shards"):
        items_of_shard(contract(), tmp_path, "1/2")


def test_known_bad_is_in_the_file(tmp_path):
    bad = {"one": KnownBadPin("typo", "me", "2030-01-01", ("oracle",))}
    pin = DatasetPin(settings=C, stages=STAGES, tasks={"one": TaskPin(A, ())}, known_bad=bad)
    whole = (
        contract(datasets={"demo": pin})
        if False
        else sealed(msgspec.structs.replace(contract(), datasets={"demo": pin}))
    )
    write_contract(tmp_path / "c.json", whole)
    assert read_contract(tmp_path / "c.json").datasets["demo"].known_bad == bad
