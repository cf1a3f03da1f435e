"""From a node's disk to shared storage: nothing torn, nothing twice, evidence before the line that names it."""

import errno
import json
import os

import pytest

from pytest_otval.cluster.journal import Journal
from pytest_otval.cluster.shipping import Shipper
from pytest_otval.evidence import Archive, files
from pytest_otval.ledger import read_ledger


class Node:
    """A run folder on a node."""

    def __init__(self, folder):
        self.run = folder / "local"
        (self.run / "ledger").mkdir(parents=True)
        self.archive = Archive(self.run, "gw0")
        self.folder = folder

    def evidence(self, name, text):
        folder = self.folder / "files" / name
        folder.mkdir(parents=True)
        (folder / "log.txt").write_text(text)
        return self.archive.add(folder, f"demo/{name}/oracle")

    def append(self, text, writer="gw0"):
        with (self.run / "ledger" / f"{writer}.jsonl").open("a") as file:
            file.write(text)

    def line(self, id, writer="gw0", **more):
        self.append(json.dumps({"v": 1, "kind": "result", "id": id, "verdict": "pass", **more}) + "\n", writer)


@pytest.fixture
def node(tmp_path):
    return Node(tmp_path)


@pytest.fixture
def run(tmp_path):
    return tmp_path / "run"


@pytest.fixture
def shipper(node, run):
    shipper = Shipper(node.run, run, "shard-0.7_0.0")
    yield shipper
    shipper.close()


def shipped(run):
    return [line["id"] for line in read_ledger(run) if line["kind"] == "result"]


def test_all_writers_go_into_one_file(node, run, shipper):
    node.line("a")
    node.line("b", "gw1")
    assert shipper.ship() == 2
    node.line("c")
    assert shipper.ship() == 1
    assert shipper.ship() == 0
    assert shipped(run) == ["a", "b", "c"]
    assert [path.name for path in (run / "ledger").iterdir()] == ["shard-0.7_0.0.jsonl"]


def test_a_line_waits_until_it_is_whole(node, run, shipper):
    node.append('{"v": 1, "kind": "result", ')
    assert shipper.ship() == 0
    node.append('"id": "a", "verdict": "pass"}\n')
    assert shipper.ship() == 1
    assert shipped(run) == ["a"]


def test_what_is_no_line_is_passed_over(node, run, shipper):
    node.append('torn by a kill\n[]\n{"v": 99}\n')
    node.line("a")
    assert shipper.ship() == 1
    assert shipped(run) == ["a"]


def test_evidence_comes_along(node, run, shipper):
    place = node.evidence("task", "what it said\n" * 1000)
    node.line("a", evidence=place)
    node.line("b", evidence=node.evidence("other", "more"))
    shipper.ship()
    first, second = read_ledger(run)
    assert dict(files(run, first["evidence"])) == {"log.txt": b"what it said\n" * 1000}
    assert dict(files(run, second["evidence"])) == {"log.txt": b"more"}
    assert [path.name for path in (run / "evidence").iterdir()] == ["shard-0.7_0.0.tar.gz"]


def test_the_lines_of_an_item_share_its_evidence(node, run, shipper):
    place = node.evidence("task", "text")
    node.line("a#oracle/0", kind="trial", evidence=place)
    node.line("a", evidence=place)
    shipper.ship()
    trial, result = read_ledger(run)
    assert trial["evidence"] == result["evidence"]


def test_an_answer_stands_without_its_logs(node, run, shipper):
    node.line("a", evidence="evidence/gw0.tar.gz@7+900")
    node.line("b", evidence="not kept: No space left on device")
    node.line("c", evidence="")
    node.evidence("task", "text")
    shipper.ship()
    places = {line["id"]: line["evidence"] for line in read_ledger(run)}
    assert places["a"].startswith("not kept: ") and places["c"] == ""
    assert places["b"] == "not kept: No space left on device"


@pytest.mark.parametrize("place", ["evidence/../../secret@0+10", "/etc/passwd@0+10", "evidence/x@0+10/../y"])
def test_no_place_leads_elsewhere(node, run, shipper, place):
    node.line("a", evidence=place)
    shipper.ship()
    (line,) = read_ledger(run)
    assert line["evidence"] == place
    assert not (run / "evidence").exists()


def test_a_full_disk_loses_nothing(node, run, shipper, monkeypatch):
    node.line("a")
    shipper.ship()
    node.line("b", evidence=node.evidence("task", "text"))
    real = os.pwrite

    def half(handle, data, at):
        if data[:1] != b"{":
            return real(handle, data, at)
        real(handle, data[:5], at)
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "pwrite", half)
    with pytest.raises(OSError, match="full"):
        shipper.ship()
    monkeypatch.undo()
    assert (run / "ledger" / "shard-0.7_0.0.jsonl").read_bytes().endswith(b"}\n")
    assert shipper.ship() == 1
    assert shipped(run) == ["a", "b"]
    *_, line = read_ledger(run)
    assert dict(files(run, line["evidence"])) == {"log.txt": b"text"}


def test_a_job_id_that_is_used_again_overwrites_nothing(node, run, shipper):
    node.line("a")
    shipper.ship()
    other = Shipper(node.run, run, "shard-0.7_0.0")
    other.ship()
    other.close()
    assert sorted(path.name for path in (run / "ledger").iterdir()) == [
        "shard-0.7_0.0-2.jsonl",
        "shard-0.7_0.0.jsonl",
    ]
    assert shipped(run) == ["a", "a"]


def test_the_journal_counts_each_item_once(node, run, shipper):
    shipper.note({"kind": "shard", "event": "began", "node": "n1", "array": 0})
    shipper.ship()
    node.append('{"v": 1, "kind": "started", "id": "a"}\n', "started")
    node.append('{"v": 1, "kind": "started", "id": "b"}\n', "started")
    node.line("a")
    shipper.ship()
    other = Shipper(node.run, run, "shard-0.7_0.1")
    other.ship()
    other.close()
    journal = Journal(run)
    assert [line["id"] for line in journal.read()] == ["a"]
    assert journal.done == {"a"} and journal.repeated == 1
    (attempt,) = journal.attempts
    assert (attempt.node, attempt.place, attempt.started - journal.done) == ("n1", (0, 0), {"b"})
    assert not attempt.ended
    shipper.note({"kind": "shard", "event": "ended", "why": "killed", "fault": "item"})
    shipper.ship()
    assert list(journal.read()) == []
    assert attempt.ended and (attempt.why, attempt.fault) == ("killed", "item")


def test_the_journal_waits_for_half_lines(run):
    (run / "ledger").mkdir(parents=True)
    file = run / "ledger" / "shard-0.7_0.0.jsonl"
    file.write_text('{"v": 1, "kind": "result", "id": "a"}\n{"v": 1, "ki')
    journal = Journal(run)
    assert [line["id"] for line in journal.read()] == ["a"]
    with file.open("a") as more:
        more.write('nd": "result", "id": "b"}\n')
    assert [line["id"] for line in journal.read()] == ["b"]


def test_a_run_without_a_ledger_has_no_answers(run):
    assert list(Journal(run).read()) == []
