import hashlib

import pytest

from pytest_otval.core import OtvalUsageError
from pytest_otval.sources.files import SourceError
from pytest_otval.sources.releases.pairs import load_releases, read_ids

SHA = "0" * 64
WHEELS = f'[wheels]\n"dep==1" = {{ file = "dep-1-py3-none-any.whl", sha256 = "{SHA}" }}\n'


def digest(*ids):
    return hashlib.sha256("\n".join(ids).encode()).hexdigest()


def pair(**changes):
    values = {
        "package": '"thing"',
        "licence": '"MIT"',
        "code": '["thing"]',
        "tests": '["tests"]',
        "old": f'{{ version = "1", file = "thing-1.tar.gz", sha256 = "{SHA}" }}',
        "new": f'{{ version = "2", file = "thing-2.tar.gz", sha256 = "{SHA}" }}',
        "wheels": '["dep==1"]',
        "fail_to_pass": '["tests/t.py::test_new", "tests/t.py::test_fast"]',
        "n_pass_to_pass": "2",
        "pass_to_pass_sha256": f'"{digest("a", "b")}"',
        **changes,
    }
    return "[[pair]]\n" + "".join(f"{key} = {value}\n" for key, value in values.items() if value is not None)


def load(tmp_path, *pairs, wheels=WHEELS):
    (tmp_path / "releases.toml").write_text(wheels + "".join(pairs))
    return load_releases(tmp_path / "releases.toml")


def test_a_pair_needs_both_sdists_and_its_wheels(tmp_path):
    releases = load(tmp_path, pair())
    (one,) = releases.pair
    assert one.name == "thing-2"
    files = [(archive.project, archive.file) for archive in releases.archives(one)]
    assert files == [("thing", "thing-1.tar.gz"), ("thing", "thing-2.tar.gz"), ("dep", "dep-1-py3-none-any.whl")]


def test_ids_left_out_count_for_the_pin_but_are_not_graded(tmp_path):
    left_out = '[{ id = "tests/t.py::test_fast", reason = "r" }, { id = "b", reason = "r" }]'
    (one,) = load(tmp_path, pair(left_out=left_out)).pair
    assert one.graded_fail_to_pass == ("tests/t.py::test_new",)
    assert one.why_not_the_pinned(["a"]) == ""


def test_other_ids_than_the_pinned_are_told(tmp_path):
    (one,) = load(tmp_path, pair()).pair
    assert one.why_not_the_pinned(["b", "a"]) == ""
    assert one.why_not_the_pinned(["a"]) == "1 pass_to_pass ids, pinned are 2"
    assert one.why_not_the_pinned(["a", "c"]).startswith("sha256 of the pass_to_pass ids is")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"code": '["../thing"]'}, r"pair\.0\.code\.0"),
        ({"code": '["a b"]'}, r"pair\.0\.code\.0"),
        ({"tests": '["/tests"]'}, r"pair\.0\.tests\.0"),
        ({"tests": '["tests\\n"]'}, r"pair\.0\.tests\.0"),
        ({"deselect": '["tests/t.py::x; reboot"]'}, r"pair\.0\.deselect\.0"),
        ({"code": "[]"}, r"pair\.0\.code"),
        ({"package": None}, r"pair\.0\.package: Field required"),
        ({"spare": "1"}, r"pair\.0\.spare"),
        ({"wheels": '["dep==2"]'}, r"thing-2: dep==2 is not in \[wheels\]"),
        ({"package": '"thing/x"'}, "cannot be a task's name"),
        ({"fail_to_pass": '["x"]', "left_out": '[{ id = "x", reason = "r" }]'}, "every fail_to_pass id is left out"),
    ],
)
def test_faults_are_told_in_one_line_with_their_place(tmp_path, changes, said):
    with pytest.raises(OtvalUsageError, match=said) as caught:
        load(tmp_path, pair(**changes))
    assert str(caught.value).startswith(str(tmp_path / "releases.toml"))
    assert "\n" not in str(caught.value)


def test_two_pairs_of_one_name_are_refused(tmp_path):
    with pytest.raises(OtvalUsageError, match="is there twice"):
        load(tmp_path, pair(), pair())


@pytest.mark.parametrize("text", ["[", "wheels = 1\npair = []", "\udce4"])
def test_what_is_no_list_of_releases_is_refused(tmp_path, text):
    (tmp_path / "releases.toml").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(OtvalUsageError):
        load_releases(tmp_path / "releases.toml")


def test_ids_are_one_a_line_and_nothing_else_ends_a_line(tmp_path):
    (tmp_path / "ids").write_text("a[\u2028]\nb\n")
    assert read_ids(tmp_path / "ids") == ("a[\u2028]", "b")


def test_missing_ids_name_the_command(tmp_path):
    with pytest.raises(SourceError, match=r"ids: No such file or directory: make it with `patch\.py ids`"):
        read_ids(tmp_path / "ids")
