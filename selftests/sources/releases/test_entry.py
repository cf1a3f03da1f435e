import string

import tomli
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_otval.sources.releases.entry import found_entry, pair_entry
from pytest_otval.sources.releases.pairs import LeftOut, Pair, PinnedFile, Release

SHA = "0" * 64
IDS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20), min_size=1, max_size=4)
PATHS = st.lists(st.text(string.ascii_letters + "_-", min_size=1, max_size=9), min_size=1, max_size=3).map(tuple)


def pair(**changes):
    values = {
        "package": "thing",
        "licence": "MIT",
        "code": ("thing",),
        "tests": ("tests",),
        "old": Release(version="1", file="thing-1.tar.gz", sha256=SHA),
        "new": Release(version="2", file="thing-2.tar.gz", sha256=SHA),
        "wheels": ("dep==1",),
        "fail_to_pass": ("tests/t.py::test_new",),
        "n_pass_to_pass": 1,
        "pass_to_pass_sha256": SHA,
        **changes,
    }
    return Pair(**values)


@settings(max_examples=50)
@given(IDS, PATHS, IDS, st.sampled_from([None, "src"]))
def test_an_entry_says_what_the_pair_is(ids, paths, left_out, root):
    one = pair(
        fail_to_pass=tuple(ids),
        code=paths,
        left_out=tuple(LeftOut(id=one, reason=one) for one in left_out),
        source_root=root,
        ci=root is None,
    )
    (read,) = tomli.loads(pair_entry(one))["pair"]
    assert Pair.model_validate(read) == one


def test_an_entry_is_written_like_those_that_are_there():
    wheels = {"dep==1": PinnedFile(file="dep-1-py3-none-any.whl", sha256=SHA)}
    assert found_entry(pair(wheels=("dep==1", "x==2")), wheels) == (
        "# into [wheels]:\n"
        f'# "dep==1" = {{ file = "dep-1-py3-none-any.whl", sha256 = "{SHA}" }}\n'
        '[[pair]]\npackage = "thing"\nlicence = "MIT"\ncode = ["thing"]\ntests = ["tests"]\n'
        f'old = {{ version = "1", file = "thing-1.tar.gz", sha256 = "{SHA}" }}\n'
        f'new = {{ version = "2", file = "thing-2.tar.gz", sha256 = "{SHA}" }}\n'
        'wheels = [\n  "dep==1",\n  "x==2",\n]\nfail_to_pass = ["tests/t.py::test_new"]\n'
        f'n_pass_to_pass = 1\npass_to_pass_sha256 = "{SHA}"\n'
    )
    assert found_entry(pair(), {}).startswith("[[pair]]\n")
