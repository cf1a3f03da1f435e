"""Packed tasks that are passed through."""

import tarfile

import pytest

from pytest_otval.sources.adapters.base import Converted
from pytest_otval.sources.adapters.registry import make_adapter
from selftests.sources.adapters.samples import HARBOR, packed, write_parquet


def convert(tmp_path, *rows):
    source = write_parquet(tmp_path / "tasks.parquet", [{"path": name, "task_binary": task} for name, task in rows])
    return list(make_adapter("harbor-parquet").convert(source))


def test_files_come_as_they_are(tmp_path):
    first, second = convert(tmp_path, ("./one/", packed()), ("two", packed({f"two/{k}": v for k, v in HARBOR.items()})))
    assert (first.name, second.name) == ("one", "two")
    for outcome in (first, second):
        assert {path: file.content for path, file in outcome.files.items()} == HARBOR
        assert [path for path, file in outcome.files.items() if file.executable] == ["tests/test.sh"]


def member(name, kind, target=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


HOSTILE = {
    "no bytes": (None, "wrong-field"),
    "no archive": (b"x" * 2000, "unreadable"),
    "cut": (packed()[:700], "unreadable"),
    "no task.toml": (packed({"a": b""}), "unreadable"),
    "leads out": (packed({**HARBOR, "../../evil": b""}), "unsafe-path"),
    "absolute": (packed({**HARBOR, "/evil": b""}), "unsafe-path"),
    "a link": (packed(members=[member("a", tarfile.SYMTYPE, "/etc/passwd")]), "unsafe-path"),
    "a hard link": (packed(members=[member("a", tarfile.LNKTYPE, "task.toml")]), "unsafe-path"),
    "a FIFO": (packed(members=[member("a", tarfile.FIFOTYPE)]), "unsafe-path"),
    "twice": (packed(members=[member("task.toml", tarfile.REGTYPE)]), "unsafe-path"),
    "below a file": (packed({**HARBOR, "task.toml/a": b""}), "unsafe-path"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_task_is_refused_and_the_next_one_comes(tmp_path, case):
    task, reason = HOSTILE[case]
    refused, good = convert(tmp_path, ("bad", task), ("good", packed()))
    assert (refused.name, refused.reason) == ("bad", reason)
    assert refused.why.isprintable()
    assert isinstance(good, Converted)
