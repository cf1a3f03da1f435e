"""What is remembered of names."""

import threading

import pytest

from pytest_otval.images import tags as tags_module
from pytest_otval.images.model import ImageConfig
from pytest_otval.images.reference import parse_reference
from pytest_otval.images.registry import RegistryImage
from pytest_otval.images.tags import Tags

NAME = parse_reference("debian:12")


def answer(digit="1"):
    return RegistryImage("sha256:" + digit * 64, ImageConfig(env={"PATH": "/x"}, cmd=("c",), labels={"a": "ü"}))


def test_first_answer_counts_for_all(tmp_path):
    one, other = Tags(tmp_path / "s" / "tags.jsonl"), Tags(tmp_path / "s" / "tags.jsonl")
    assert one.known(NAME) is other.known(NAME) is None
    assert one.remember(NAME, answer("1")) == answer("1")
    assert other.remember(NAME, answer("2")) == answer("1")
    assert other.known(NAME) == Tags(tmp_path / "s" / "tags.jsonl").known(NAME) == answer("1")


def test_pinned_name_has_an_entry_of_its_own(tmp_path):
    tags = Tags(tmp_path / "t")
    tags.remember(NAME, answer("1"))
    pinned = parse_reference("debian:12@sha256:" + "2" * 64)
    assert tags.known(pinned) is None
    tags.remember(pinned, answer("2"))
    assert tags.known(parse_reference("debian@sha256:" + "2" * 64)) == answer("2")


def test_other_architecture_has_other_answers(tmp_path, monkeypatch):
    Tags(tmp_path / "t").remember(NAME, answer())
    monkeypatch.setattr(tags_module, "ARCHITECTURE", "mips")
    assert Tags(tmp_path / "t").known(NAME) is None


@pytest.mark.parametrize("junk", [b"[", b"3\n", b'{"name": "docker.io', b"\xff\n", b'{"name": 1, "digest": 2}\n'])
def test_damaged_lines_are_asked_for_again(tmp_path, junk):
    (tmp_path / "t").write_bytes(junk)
    tags = Tags(tmp_path / "t")
    assert tags.known(NAME) is None
    tags.remember(NAME, answer())
    assert Tags(tmp_path / "t").known(NAME) == answer()


def test_store_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    tags = Tags(tmp_path / "file" / "tags.jsonl")
    assert tags.remember(NAME, answer("1")) == answer("1") == tags.known(NAME)


def test_many_write_at_once(tmp_path):
    names = [parse_reference(f"a/b:{number}") for number in range(50)]

    def work(digit):
        tags = Tags(tmp_path / "t")
        for name in names:
            tags.remember(name, answer(digit))

    threads = [threading.Thread(target=work, args=(digit,)) for digit in "1234"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    views = [[tags.known(name) for name in names] for tags in (Tags(tmp_path / "t"), Tags(tmp_path / "t"))]
    assert views[0] == views[1]
    assert None not in views[0]
