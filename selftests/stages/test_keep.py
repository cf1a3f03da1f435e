"""The proposal for ``keep``: few entries, which hold all that was changed, and nothing that is not new."""

from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.stages.keep import as_toml, in_system, proposal
from pytest_otval.trial.changed import Change

SITE = "/usr/lib/python3/dist-packages"
KNOWN = {"/usr", "/usr/bin", "/usr/lib", "/usr/lib/python3", SITE, "/etc", "/opt"}


def is_new(path):
    return path not in KNOWN


def proposed(*paths, records=None):
    return proposal([Change("file", path) for path in paths], records or {}, is_new)


def test_a_package():
    record = f"{SITE}/numpy-2.0.dist-info/RECORD"
    text = "numpy/core.so,,\nnumpy.libs/x.so,,\n../../../bin/f2py,,\n"
    paths = [record, f"{SITE}/numpy/core.so", f"{SITE}/numpy.libs/x.so", "/usr/bin/f2py", "/usr/bin/mine"]
    assert proposed(*paths, records={record: text}) == ["pkg:numpy", "/usr/bin/mine"]


def test_a_new_folder_is_one_entry_and_an_old_one_never():
    assert proposed("/opt/tool/bin/a", "/opt/tool/lib/b", "/etc/tool.conf", "/etc/other.conf") == [
        "/etc/other.conf",
        "/etc/tool.conf",
        "/opt/tool/",
    ]


def test_what_is_elsewhere_or_compiled_is_left_out():
    assert proposed("/app/x", "/root/.cache/y", "/var/lib/z", "/usrx/y", "/usr/lib/python3/__pycache__/a.pyc") == []


def test_what_was_removed_is_told_by_its_path():
    assert proposal([Change("removed", "/usr/bin/old")], {}, is_new) == ["/usr/bin/old"]


def test_on_one_line():
    assert as_toml(["pkg:a", '/opt/"x"\n/']) == '[metadata.otval] keep = ["pkg:a", "/opt/\\"x\\"\\n/"]'


NAMES = st.sampled_from(
    ["usr", "etc", "opt", "app", "bin", "lib", "a", "b", "x-1.dist-info", "python3", "dist-packages"]
)
PATHS = st.lists(NAMES, min_size=1, max_size=6).map(lambda parts: "/" + "/".join(parts))


@given(st.sets(PATHS), st.sets(PATHS))
def test_all_is_held_and_nothing_old(changed, old):
    entries = proposal([Change("file", path) for path in changed], {}, lambda path: path not in old)
    assert len(entries) == len(set(entries))
    for path in filter(in_system, changed):
        parts = [f"{path}/", path, *(f"{path[:at]}/" for at in range(len(path)) if path[at] == "/")]
        assert set(entries) & set(parts) or (".dist-info" in path and "pkg:x" in entries)
    for entry in entries:
        assert entry == "pkg:x" or in_system(entry.rstrip("/"))
        assert not entry.endswith("/") or entry.rstrip("/") not in old
