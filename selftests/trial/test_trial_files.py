import io
import os
import stat
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.core import Conclusion
from pytest_otval.task.copies import copy_in
from pytest_otval.trial.files import (
    MAX_EVIDENCE_BYTES,
    MAX_EVIDENCE_FILES,
    below_roots,
    keep_artifacts,
    keep_evidence,
    sanitise,
)

ROOTS = ["/app/out", "/logs/artifacts"]


def member(name, kind=tarfile.REGTYPE, link="", data=b"x", mode=0o644):
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, link, mode
    info.size = len(data) if kind == tarfile.REGTYPE else 0
    return info, data


def archive_of(members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for info, data in members:
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def clean(folder, data):
    """Return the members that are left of an archive, by name."""
    raw, target = Path(folder, "raw.tar"), Path(folder, "clean.tar")
    raw.write_bytes(data)
    sanitise(raw, target, below_roots(ROOTS))
    with tarfile.open(target) as tar:
        return {info.name: info for info in tar}


@pytest.mark.parametrize(
    "kept",
    [
        member("app/out"),
        member("./app/out/file"),
        member("/app/out/absolute"),
        member("app/out/ä\n"),
        member("app/out/" + "x" * 300),
        member("app/out", tarfile.DIRTYPE),
        member("app/out/link", tarfile.SYMTYPE, "file"),
        member("app/out/a/link", tarfile.SYMTYPE, "../file"),
        member("app/out/link", tarfile.SYMTYPE, "/app/out/file"),
        member("app/out/dangling", tarfile.SYMTYPE, "no/such"),
        member("logs/artifacts/x"),
    ],
    ids=lambda pair: f"{pair[0].name[:20]!r} {pair[0].linkname}",
)
def test_kept(tmp_path, kept):
    (found,) = clean(tmp_path, archive_of([kept])).values()
    assert (found.type, found.size) == (kept[0].type, kept[0].size)
    assert "/" + found.name.removeprefix("/") == os.path.normpath("/" + kept[0].name.removeprefix("/"))


def test_the_first_of_two_at_one_path(tmp_path):
    """As declared artifacts that lie in each other give them; a second one could not be unpacked."""
    file, folder, below = (member("app/out/a"), member("app/out/a", tarfile.DIRTYPE), member("app/out/a/b"))
    hard = member("app/out/a", tarfile.LNKTYPE, "app/out/a")
    clean(tmp_path, archive_of([file, hard, file, folder, below]))
    with tarfile.open(tmp_path / "clean.tar") as tar:
        assert [(info.name, info.type) for info in tar] == [("app/out/a", tarfile.REGTYPE)]


def test_links_out_where_they_may_be(tmp_path):
    raw, target = tmp_path / "raw.tar", tmp_path / "clean.tar"
    raw.write_bytes(archive_of([member("app/out/link", tarfile.SYMTYPE, "/etc"), member("app/out/link/passwd")]))
    sanitise(raw, target, below_roots(ROOTS), links_out=True)
    with tarfile.open(target) as tar:
        assert [(info.name, info.linkname) for info in tar] == [("app/out/link", "/etc")]


@pytest.mark.parametrize(
    "dropped",
    [
        member("etc/passwd"),
        member("app/outside"),
        member("app"),
        member("app/out/../../etc/passwd"),
        member("/etc/passwd"),
        member("../app/out/x"),
        member("app/out/device", tarfile.CHRTYPE),
        member("app/out/device", tarfile.BLKTYPE),
        member("app/out/fifo", tarfile.FIFOTYPE),
        member("app/out/hard", tarfile.LNKTYPE, "etc/shadow"),
        member("app/out/hard", tarfile.LNKTYPE, "app/out/unseen"),
        member("app/out/link", tarfile.SYMTYPE, "/etc/shadow"),
        member("app/out/link", tarfile.SYMTYPE, "../../tests/expected"),
        member("app/out/link", tarfile.SYMTYPE, "/app/out/../../tests/expected"),
        member("app/out/link", tarfile.SYMTYPE, "/app/outside"),
        member("app/out", tarfile.SYMTYPE, "/tests"),
        member("app/out/link", tarfile.SYMTYPE, "a/../file"),
        member("app/out/odd", b"Z"),
    ],
    ids=lambda pair: f"{pair[0].name} {pair[0].type} {pair[0].linkname}",
)
def test_dropped(tmp_path, dropped):
    assert list(clean(tmp_path, archive_of([dropped, member("app/out/good")]))) == ["app/out/good"]


def test_link_that_leads_out_through_another_link(tmp_path):
    members = [
        member("app/out/a/b/up", tarfile.SYMTYPE, "../.."),
        member("app/out/evil", tarfile.SYMTYPE, "a/b/up/../../../tests/expected"),
        member("app/out/a/b/up/evil", tarfile.SYMTYPE, "../../tests"),
        member("app/out/a/b/up/file"),
    ]
    assert list(clean(tmp_path, archive_of(members))) == ["app/out/a/b/up"]


def test_hard_link_to_a_kept_file(tmp_path):
    """A git repository that was cloned from its neighbour is full of them."""
    members = [member("app/out/one"), member("app/out/two", tarfile.LNKTYPE, "./app/out/one")]
    found = clean(tmp_path, archive_of(members))
    assert found["app/out/two"].linkname == "app/out/one"


def test_modes_lose_what_is_special(tmp_path):
    found = clean(
        tmp_path, archive_of([member("app/out/x", mode=0o7755), member("app/out/d", tarfile.DIRTYPE, mode=0o3777)])
    )
    assert [info.mode for info in found.values()] == [0o755, 0o777]


def test_hidden_headers_are_left_behind(tmp_path):
    info, data = member("app/out/x")
    info.pax_headers = {"SCHILY.xattr.security.capability": "x", "comment": "x"}
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(info, io.BytesIO(data))
    assert clean(tmp_path, out.getvalue())["app/out/x"].pax_headers == {}


def test_no_bytes_are_no_members(tmp_path):
    assert clean(tmp_path, b"") == {}


@pytest.mark.parametrize("data", [b"x", b"x" * 2000, b"\x1f\x8b" + b"x" * 600], ids=len)
def test_what_is_no_archive(tmp_path, data):
    with pytest.raises(tarfile.TarError):
        clean(tmp_path, data)


WHOLE = archive_of([member("app/out/one", data=b"1" * 1000), member("app/out/two", data=b"2" * 1000)])


@given(st.integers(min_value=1, max_value=len(WHOLE)))
def test_truncated_archive_ends_or_is_refused(length):
    with TemporaryDirectory() as folder:
        try:
            found = clean(folder, WHOLE[:length])
        except tarfile.TarError:
            return
        assert list(found) == ["app/out/one", "app/out/two"][: len(found)]


parts = st.sampled_from(["app", "out", "logs", "artifacts", "..", ".", "a", "b", "etc", ""])
paths = st.lists(parts, max_size=6).map("/".join)
kinds = st.sampled_from(
    [tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, b"S", b"7"]
)
below = st.sampled_from(["", "app/out/", "/app/out/a/", "logs/artifacts/"])
members = st.builds(
    lambda prefix, name, kind, link, mode: member(prefix + name, kind, link, mode=mode),
    below,
    paths,
    kinds,
    st.one_of(paths, paths.map("/".__add__), st.just("app/out/a"), st.just("../..")),
    st.integers(0, 0o7777),
)


@given(st.lists(members, max_size=8))
def test_whatever_is_unpacked_stays_below_its_root(hostile):
    with TemporaryDirectory() as folder:
        clean(folder, archive_of(hostile))
        root = Path(folder, "root")
        root.mkdir()
        with tarfile.open(Path(folder, "clean.tar")) as tar:
            for info in tar:
                assert info.isreg() or info.isdir() or info.issym() or info.islnk()
                assert info.mode & ~0o777 == 0
                assert any(Path("/", info.name).is_relative_to(allowed) for allowed in ROOTS)
                target = root / info.name
                target.parent.mkdir(parents=True, exist_ok=True)
                assert target.parent.resolve() == target.parent, "a member below a link"
                if info.issym() and not os.path.lexists(target):
                    # As a container sees it, whose root is ``root``.
                    link = info.linkname
                    target.symlink_to(f"{root}{link}" if link.startswith("/") else link)
                elif info.isdir() and not os.path.lexists(target):
                    target.mkdir()
        allowed = [str(root / name[1:]) for name in ROOTS]
        for path in root.rglob("*"):
            if path.is_symlink():
                try:
                    goal = str(path.resolve())
                except RuntimeError:
                    continue
                assert any(goal == name or goal.startswith(f"{name}/") for name in allowed), (path, goal)


def test_copy_in_takes_files_folders_and_links(tmp_path):
    source, target = tmp_path / "tests", tmp_path / "copy"
    (source / "sub").mkdir(parents=True)
    (source / "sub" / "run.sh").write_text("x")
    (source / "sub" / "run.sh").chmod(0o640)
    (source / "plain").write_text("x")
    (source / "plain").chmod(0o640)
    (source / "loop").symlink_to("loop")
    (source / "host").symlink_to("/etc")
    (source / "link.sh").symlink_to("/etc/hostname")
    (source / "folder.sh").mkdir()
    os.mkfifo(source / "fifo")
    os.mkfifo(source / "sub" / "fifo.sh")
    before = Path("/etc/hostname").stat()
    copy_in(source, target)
    assert sorted(os.listdir(target)) == ["folder.sh", "host", "link.sh", "loop", "plain", "sub"]
    assert os.listdir(target / "sub") == ["run.sh"]
    assert [os.readlink(target / name) for name in ("loop", "host", "link.sh")] == ["loop", "/etc", "/etc/hostname"]
    assert stat.S_IMODE((target / "sub" / "run.sh").stat().st_mode) == 0o755
    assert stat.S_IMODE((target / "plain").stat().st_mode) == 0o640
    assert Path("/etc/hostname").stat() == before


def test_copy_in_adds_to_what_is_there(tmp_path):
    for name, text in (("shared", "1"), ("own", "2")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(text)
    (tmp_path / "shared" / "other").write_text("1")
    for name in ("shared", "own"):
        copy_in(tmp_path / name, tmp_path / "copy")
    assert [(tmp_path / "copy" / name).read_text() for name in ("file", "other")] == ["2", "1"]


@pytest.mark.parametrize("unreadable", ["missing", "file", "locked", "deep"])
def test_copy_in_of_what_cannot_be_copied(tmp_path, unreadable):
    if unreadable == "locked" and os.getuid() == 0:
        pytest.skip("root reads everything")
    (tmp_path / "file").write_text("x")
    (tmp_path / "locked").mkdir(mode=0)
    Path(tmp_path, "deep", *"d" * 600).mkdir(parents=True)
    with pytest.raises(Conclusion) as caught:
        copy_in(tmp_path / unreadable, tmp_path / "copy")
    assert caught.value.reason == "bad-task"
    assert "\n" not in caught.value.headline
    (tmp_path / "locked").chmod(0o700)


def test_evidence_is_regular_small_and_few(tmp_path):
    logs, kept = tmp_path / "logs", tmp_path / "kept"
    logs.mkdir()
    (logs / "0-good").write_bytes(b"\xff\x00")
    (logs / "1-big").write_bytes(b"x" * (MAX_EVIDENCE_BYTES + 1))
    (logs / "2-link").symlink_to("/etc/passwd")
    (logs / "3-loop").symlink_to("3-loop")
    (logs / "4-folder").mkdir()
    os.mkfifo(logs / "5-fifo")
    for number in range(MAX_EVIDENCE_FILES):
        (logs / f"6-{number:03}").write_text("x")
    keep_evidence(logs, kept)
    names = sorted(os.listdir(kept))
    assert names[:3] == ["0-good", "1-big", "6-000"]
    assert len(names) == MAX_EVIDENCE_FILES - 4
    assert (kept / "0-good").read_bytes() == b"\xff\x00"
    assert (kept / "1-big").stat().st_size == MAX_EVIDENCE_BYTES


@pytest.mark.skipif(os.getuid() == 0, reason="root reads everything")
def test_evidence_that_cannot_be_read_is_left_out(tmp_path):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "locked").write_text("x")
    (tmp_path / "logs" / "locked").chmod(0)
    keep_evidence(tmp_path / "logs", tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


def test_a_log_of_ours_stays_what_it_is(tmp_path):
    logs, kept = tmp_path / "logs", tmp_path / "kept"
    for folder, text in ((logs, "forged"), (kept, "seen")):
        folder.mkdir()
        (folder / "test-stdout.txt").write_text(text)
    (kept / "dangling").symlink_to(tmp_path / "outside")
    (logs / "dangling").write_text("x")
    (logs / "other").write_text("x")
    keep_evidence(logs, kept)
    assert (kept / "test-stdout.txt").read_text() == "seen"
    assert (kept / "other").read_text() == "x"
    assert not (tmp_path / "outside").exists()


def test_artifacts_are_regular_small_and_few(tmp_path):
    members = [
        member("app/out", tarfile.DIRTYPE),
        member("app/out/a/b", data=b"y" * (MAX_EVIDENCE_BYTES + 1)),
        member("app/out/a/b/c", data=b"a file is no folder"),
        member("app/out/a", data=b"a folder is no file"),
        member("app/out/a/b", data=b"second"),
        member("app/out/link", tarfile.SYMTYPE, "a/b"),
        member("app/out/" + "n" * 300, data=b"too long a name"),
        *(member(f"app/out/z{number:03}") for number in range(MAX_EVIDENCE_FILES)),
    ]
    (tmp_path / "artifacts.tar").write_bytes(archive_of(members))
    keep_artifacts(tmp_path / "artifacts.tar", tmp_path / "kept")
    assert [path.name for path in (tmp_path / "kept" / "app" / "out" / "a").iterdir()] == ["b"]
    assert (tmp_path / "kept" / "app" / "out" / "a" / "b").read_bytes() == b"y" * MAX_EVIDENCE_BYTES
    assert len(list((tmp_path / "kept" / "app" / "out").iterdir())) == 1 + MAX_EVIDENCE_FILES - 5


def test_no_artifacts_make_no_folder(tmp_path):
    (tmp_path / "artifacts.tar").write_bytes(archive_of([member("app/out", tarfile.DIRTYPE)]))
    keep_artifacts(tmp_path / "artifacts.tar", tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


@given(
    hostile=st.lists(st.tuples(st.text(max_size=12), st.sampled_from([tarfile.REGTYPE, tarfile.SYMTYPE])), max_size=6)
)
def test_artifacts_stay_below_their_folder(hostile):
    """As they come: through ``sanitise``."""
    with TemporaryDirectory() as folder:
        names = [("app/out/" + name.replace("\0", ""), kind) for name, kind in hostile]
        members = [member(name.encode(errors="replace").decode(), kind, "../..") for name, kind in names]
        raw, target = Path(folder, "raw.tar"), Path(folder, "clean.tar")
        raw.write_bytes(archive_of(members))
        sanitise(raw, target, below_roots(ROOTS))
        keep_artifacts(target, Path(folder, "deep", "kept"))
        found = [path for path in Path(folder).rglob("*") if path not in (raw, target)]
        assert all(path.is_relative_to(Path(folder, "deep")) and not path.is_symlink() for path in found)
