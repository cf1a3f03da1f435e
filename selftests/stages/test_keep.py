"""The proposal for ``keep``: few entries, which hold all that was changed, and nothing that is not new."""

from pathlib import PurePosixPath

import tomli
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.stages.keep import MAX_ENTRIES, MAX_SIGNS, as_toml, in_system, proposal
from pytest_otval.task.keep import keep_of
from pytest_otval.trial.changed import Change
from pytest_otval.trial.restoring import restoring_of

SITE = "/usr/lib/python3/dist-packages"
KNOWN = {"/usr", "/usr/bin", "/usr/lib", "/usr/lib/python3", SITE, "/etc", "/opt"}


def is_new(path):
    return path not in KNOWN


def proposed(*paths):
    return list(proposal([Change("file", path) for path in paths], (), is_new).entries)


def test_a_package():
    """What keeping it keeps: no programs."""
    site = ["numpy-2.0.dist-info/RECORD", "numpy/core.so", "numpy.libs/x.so", "numpy.py", "numpypy/x"]
    assert proposed(*(f"{SITE}/{one}" for one in site), "/usr/bin/f2py", "/usr/bin/mine") == [
        "pkg:numpy",
        "/usr/bin/f2py",
        "/usr/bin/mine",
        f"{SITE}/numpypy/",
    ]


def test_a_package_in_an_environment_that_is_new():
    site = "/opt/venv/lib/python3.11/site-packages"
    assert proposed(f"{site}/x-1.dist-info/METADATA", f"{site}/x/a.py", "/opt/venv/bin/x") == ["/opt/venv/"]


def test_it_is_bounded():
    many = proposal([Change("file", f"/etc/{number:04}") for number in range(3000)], (), is_new)
    assert (len(many.entries), many.more) == (MAX_ENTRIES, 3000 - MAX_ENTRIES)
    long = proposal([Change("file", f"/etc/{number}{'x' * 4000}") for number in range(20)], (), is_new)
    assert sum(map(len, long.entries)) <= MAX_SIGNS
    assert (len(long.entries) > 0, len(long.entries) + long.more) == (True, 20)


def test_what_no_task_toml_can_hold():
    odd = proposal(
        [Change("file", f"/etc/{name}") for name in ("a\nb", "\udcff", "\x7f", "\x1b[2J", "fine")], (), is_new
    )
    assert (odd.entries, odd.more) == (("/etc/fine",), 4)


def test_paths_of_many_folders_are_no_work():
    asked = []

    def asking(path):
        asked.append(path)
        return is_new(path)

    deep = "x/" * 2000
    entries = proposal([Change("file", f"/opt/{number}/{deep}") for number in range(200)], (), asking).entries
    assert len(entries) == MAX_ENTRIES
    assert len(asked) <= 200


def test_a_new_folder_is_one_entry_and_an_old_one_never():
    assert proposed("/opt/tool/bin/a", "/opt/tool/lib/b", "/etc/tool.conf", "/etc/other.conf") == [
        "/etc/other.conf",
        "/etc/tool.conf",
        "/opt/tool/",
    ]


def test_what_is_elsewhere_or_compiled_is_left_out():
    assert proposed("/app/x", "/root/.cache/y", "/var/lib/z", "/usrx/y", "/usr/lib/python3/__pycache__/a.pyc") == []


def test_what_was_removed_is_told_by_its_path():
    assert proposal([Change("removed", "/usr/bin/old")], (), is_new).entries == ("/usr/bin/old",)


@given(st.lists(st.text().filter(str.isprintable)))
def test_what_is_written_is_what_is_read(names):
    entries = [f"/opt/{name}" for name in names]
    written = as_toml(entries)
    assert len(written.splitlines()) == 1
    assert tomli.loads(written.replace("] ", "]\n", 1))["metadata"]["otval"]["keep"] == entries


NAMES = st.sampled_from(
    ["usr", "etc", "opt", "app", "bin", "lib", "a", "x", ".x", "x.py", "X-1.dist-info", "python3", "dist-packages"]
)
PLACES = st.sampled_from(["", SITE, "/opt/x/lib/python3.9/site-packages", "/opt/.x/lib/python3/site-packages"])
BELOW = st.lists(NAMES, min_size=1, max_size=6).map(lambda parts: "/" + "/".join(parts))
PATHS = st.tuples(PLACES, BELOW).map("".join)


@given(st.sets(PATHS), st.sets(PATHS))
def test_all_is_kept_and_nothing_old(changed, old):
    """As the one who carries it over sees it."""
    entries = proposal([Change("file", path) for path in changed], (), lambda path: path not in old).entries
    assert len(entries) == len(set(entries))
    kept = restoring_of("masked", (), (), keep_of({"otval": {"keep": list(entries)}}))
    for path in filter(in_system, changed):
        assert kept._root_of(PurePosixPath(path)), path
    for entry in entries:
        assert entry.startswith("pkg:") or in_system(entry.rstrip("/"))
        assert not entry.endswith("/") or entry.rstrip("/") not in old
