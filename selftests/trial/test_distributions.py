"""Python distributions in what was changed; their RECORD files are hostile."""

import os

from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.trial.changed import Change
from pytest_otval.trial.distributions import distributions, normal, read_records
from selftests.fakes import FakeSandbox

SITE = "/opt/venv/lib/python3.11/site-packages"
RECORD = f"{SITE}/Big_Thing-2.0.dist-info/RECORD"


def files(*paths):
    return [Change("file", path) for path in paths]


def test_files_are_those_of_the_record():
    text = 'big/__init__.py,sha256=x,1\nbig.py,,\n"with,comma.py",,\n../../../bin/big,,\n\n'
    known = distributions(files(RECORD), {RECORD: text})
    assert known.names == ("big-thing",)
    for path in (
        "big/__init__.py",
        "big/made/later.pyc",
        "big.py",
        "with,comma.py",
        "big_thing-1.dist-info/METADATA",
    ):
        assert known.own(f"{SITE}/{path}"), path
    assert known.own("/opt/venv/bin/big")
    assert not known.own("/opt/venv/bin/other")
    assert not known.own(f"{SITE}/other/big.py")
    assert not known.own(f"{SITE}/other-1.0.dist-info/METADATA")


def test_without_a_record_only_its_own_folder_is_known():
    known = distributions(files(RECORD), {})
    assert known.names == ("big-thing",)
    assert known.own(f"{SITE}/big_thing-2.0.dist-info/METADATA")
    assert not known.own(f"{SITE}/big/__init__.py")


def test_one_that_was_removed():
    assert distributions([Change("removed", f"{SITE}/gone-1.dist-info")], {}).names == ("gone",)


def test_names():
    assert normal("Foo__Bar.baz-X") == "foo-bar-baz-x"
    assert distributions(files(f"{SITE}/-1.dist-info/RECORD", f"{SITE}/\x1b[2J-1.dist-info/RECORD"), {}).names == ()


@given(st.text(max_size=200))
def test_any_record(text):
    known = distributions(files(RECORD), {RECORD: text})
    assert known.names == ("big-thing",)
    assert not known.own("/etc/passwd") or "passwd" in text


def test_only_regular_files_are_read(tmp_path):
    folder = tmp_path / "site" / "a-1.dist-info"
    folder.mkdir(parents=True)
    (tmp_path / "secret").write_text("secret")
    for name in ("b", "c", "d"):
        (tmp_path / "site" / f"{name}-1.dist-info").mkdir()
    (folder / "RECORD").write_bytes(b"a.py,,\n\xff")
    (tmp_path / "site" / "b-1.dist-info" / "RECORD").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "site" / "c-1.dist-info" / "RECORD")
    changes = files(*(f"/site/{name}-1.dist-info/RECORD" for name in "abcde"))
    assert read_records(FakeSandbox(), tmp_path, changes) == {"/site/a-1.dist-info/RECORD": "a.py,,\n\udcff"}
