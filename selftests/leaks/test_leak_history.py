"""Repositories in an image: who has the lines of the fix, and what a hostile repository comes to."""

import hashlib
import random
import struct
import zlib

import pytest

from pytest_otval.images.contents import Contents
from pytest_otval.leaks import objects as module
from pytest_otval.leaks.objects import Objects, TooLargeError
from selftests.leaks.conftest import ADDED, AFTER, BEFORE, PATCH, ids, pack

FIX = {"solution/fix.patch": PATCH}


@pytest.fixture
def leaks(found, repository):
    """Scan an image with the repository: pairs of id and message."""

    def run(edits=FIX):
        return [(one.check, one.message) for one in found(edits, repository.files())]

    return run


def test_repository_without_a_later_commit(repository, leaks):
    repository.commit({"src/app.py": BEFORE})
    repository.commit({"src/other.py": "x = 1\n"})
    assert leaks() == []


@pytest.mark.parametrize("pack", [False, True])
@pytest.mark.parametrize("keep", ["branch", "tag", "reflog"])
def test_later_commit(repository, leaks, keep, pack):
    first = repository.commit({"src/app.py": BEFORE})
    fix = repository.commit({"src/app.py": AFTER})
    if keep != "reflog":
        repository.git(keep, "later")
    repository.git("reset", "-q", "--hard", first)
    if pack:
        repository.git("gc", "-q")
    message = f"commit {fix[:12]}, which HEAD does not come from, in /app/.git has these lines in src/app.py"
    assert leaks() == [("image-git-history", message)]


def test_pruned_history(repository, leaks):
    first = repository.commit({"src/app.py": BEFORE})
    repository.commit({"src/app.py": AFTER})
    repository.git("reset", "-q", "--hard", first)
    repository.git("reflog", "expire", "--expire=now", "--all")
    repository.git("gc", "-q", "--prune=now")
    assert leaks() == []


def test_stash_and_what_was_only_added(repository, leaks):
    repository.commit({"src/app.py": BEFORE})
    (repository.path / "src/app.py").write_text(AFTER)
    repository.git("stash", "-q")
    ((check, message),) = leaks()
    assert (check, message[:7]) == ("image-git-history", "commit ")
    repository.git("stash", "drop", "-q")
    (repository.path / "copy.py").write_text(AFTER)
    repository.git("add", "copy.py")
    repository.git("rm", "-q", "--cached", "copy.py")
    (repository.path / "copy.py").unlink()
    repository.git("reflog", "expire", "--expire=now", "--all")
    repository.git("gc", "-q", "--prune=now")
    assert leaks() == []
    (repository.path / "copy.py").write_text(f"{AFTER}#\n")
    repository.git("add", "copy.py")
    (repository.path / "copy.py").unlink()
    ((check, message),) = leaks()
    assert (check, message[:7]) == ("image-git-history", "object ")


def test_past_of_head(repository, leaks):
    fixed = repository.commit({"src/app.py": AFTER})
    repository.commit({"src/app.py": BEFORE})
    message = f"commit {fixed[:12]}, from which HEAD comes, in /app/.git has these lines in src/app.py"
    assert leaks() == [("image-git-history", message)]


def test_head_that_has_what_the_working_folder_lacks(repository, leaks):
    head = repository.commit({"src/app.py": AFTER})
    (repository.path / "src/app.py").write_text(BEFORE)
    message = f"commit {head[:12]}, which is HEAD, in /app/.git has these lines in src/app.py"
    assert leaks() == [("image-git-history", message)]


def test_fix_that_stands_in_the_working_folder_is_told_once(repository, leaks):
    repository.commit({"src/app.py": AFTER})
    assert [check for check, _ in leaks()] == ["image-has-gold-lines"]


def test_a_part_of_the_lines_in_another_file_of_a_later_commit(repository, leaks):
    first = repository.commit({"src/app.py": BEFORE})
    repository.commit({"src/licence.py": ADDED})
    repository.git("reset", "-q", "--hard", first)
    assert [check for check, _ in leaks()] == ["image-git-history"]
    more = "\n".join(f"+    another_line_of_the_fix_{number} = compute({number})" for number in range(20))
    patch = f"{PATCH}@@ -10,1 +13,21 @@\n x\n{more}\n"
    assert leaks({"solution/fix.patch": patch}) == []


# --- the reader of objects, against git itself


@pytest.fixture
def objects(tmp_path):
    """Open the objects of ``{path: content}`` below /app/.git."""
    made = []

    def make(files):
        file = pack(tmp_path / f"objects{len(made)}.sqfs", files)
        contents = Contents((file,))
        made.append(contents)
        return Objects(contents, "app/.git", tmp_path)

    yield make
    for one in made:
        one.__exit__(None, None, None)


@pytest.mark.parametrize("packs", [0, 1, 2])
def test_every_object_is_what_git_says(repository, objects, packs):
    generator = random.Random(7)
    lines = [f"line {generator.random()}\n" for _ in range(3000)]
    for number in range(30):
        lines[generator.randrange(3000)] = f"changed {number}\n"
        repository.commit({"long.txt": "".join(lines), f"f{number}": str(number)})
        if packs == 2 and number == 15:
            repository.git("repack", "-qd")
    if packs:
        repository.git("repack", "-qd" if packs == 2 else "-qad", "--depth=50")
    said = repository.git("cat-file", "--batch-all-objects", "--batch-check").splitlines()
    with objects(repository.files()) as found:
        assert sorted(found) == [line.split()[0] for line in said]
        for line in said:
            name, kind, size = line.split()
            assert found.kind(name) == kind
            read, data = found.read(name)
            assert (read, len(data)) == (kind, int(size))
            assert hashlib.sha1(f"{kind} {size}\0".encode() + data).hexdigest() == name


def loose(name, raw):
    return {f"app/.git/objects/{name[:2]}/{name[2:]}": raw}


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"no zlib",
        zlib.compress(b"blob 5\0abc"),
        zlib.compress(b"blob 2\0abc"),
        zlib.compress(b"blob 5000000\0" + bytes(5000000)),
        zlib.compress(b"blob 5\0" + bytes(10**8)),
        zlib.compress(b"wrong 3\0abc"),
        zlib.compress(b"blob 99999999999999\0abc"),
        zlib.compress(b"x" * 10**7),
    ],
    ids=["empty", "noise", "short", "long", "large", "bomb", "kind", "size", "head"],
)
def test_hostile_loose_object(objects, raw):
    with objects(loose("ab" * 20, raw)) as found:
        assert found.read("ab" * 20) is None


def packed_files(entries, offsets=None):
    """A pack of raw entries with its index, names counted up."""
    body, places = b"PACK" + struct.pack(">II", 2, len(entries)), []
    for entry in entries:
        places.append(len(body))
        body += entry
    places = offsets or places
    names = [bytes([number]) * 20 for number in range(len(places))]
    fan = b"".join(struct.pack(">I", sum(name[0] <= byte for name in names)) for byte in range(256))
    index = b"\xfftOc" + struct.pack(">I", 2) + fan + b"".join(names) + bytes(4 * len(names))
    index += b"".join(struct.pack(">I", place) for place in places) + bytes(40)
    folder = "app/.git/objects/pack/pack-x"
    return {f"{folder}.pack": body + bytes(20), f"{folder}.idx": index}


def entry(kind, data, size=None, between=b""):
    size = len(data) if size is None else size
    head = bytearray([kind << 4 | size & 15])
    size >>= 4
    while size:
        head[-1] |= 128
        head.append(size & 127)
        size >>= 7
    return bytes(head) + between + zlib.compress(data)


def number(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


BASE = b"x" * 60000
COPY = bytes([0x80 | 0x10 | 0x20, 0x60, 0xEA])
"""All 60,000 bytes of the base."""


def delta(made, instructions, base=60000):
    return number(base) + number(made) + instructions


@pytest.mark.parametrize(
    "second",
    [
        entry(3, b"abc", size=2**40),
        entry(3, bytes(10**8), size=10),
        entry(0, b"abc"),
        entry(5, b"abc"),
        entry(7, delta(60000, COPY), between=b"\x01" * 20),
        entry(7, delta(60000, COPY), between=b"\x09" * 20),
        entry(7, delta(2**45, COPY * 100000), between=bytes(20)),
        entry(7, delta(100, COPY * 100000), between=bytes(20)),
        entry(7, delta(60000, COPY, base=5), between=bytes(20)),
        entry(7, delta(3, b"\x05ab"), between=bytes(20)),
        entry(7, delta(3, b"\x00"), between=bytes(20)),
        entry(7, b"\xff" * 100, between=bytes(20)),
        entry(7, b"", between=bytes(20)),
        entry(6, delta(60000, COPY), between=b"\x00"),
        entry(6, delta(60000, COPY), between=b"\xff\xff\xff\xff\xff\xff\xff\x7f"),
        b"\xff" * 30,
        b"",
    ],
)
def test_hostile_packed_object(objects, second):
    with objects(packed_files([entry(3, BASE), second])) as found:
        assert found.read("00" * 20) == ("blob", BASE)
        assert found.read("01" * 20) is None
        assert found.kind("01" * 20) in ("", "blob")


def test_delta_that_is_right(objects):
    second = entry(7, delta(60003, COPY + b"\x03abc"), between=bytes(20))
    with objects(packed_files([entry(3, BASE), second])) as found:
        assert found.read("01" * 20) == ("blob", BASE + b"abc")
        assert found.kind("01" * 20) == "blob"


def test_deltas_in_a_circle_and_offsets_out_of_the_pack(objects):
    entries = [entry(7, delta(1, b"\x01a"), between=bytes([1]) * 20), entry(7, delta(1, b"\x01a"), between=bytes(20))]
    with objects(packed_files(entries)) as found:
        assert (found.read("00" * 20), found.kind("00" * 20)) == (None, "")
    with objects(packed_files([entry(3, b"abc")], offsets=[2**30])) as found:
        assert found.read("00" * 20) is None


@pytest.mark.parametrize("cut", [0, 7, 500, 1031, 1040, 1070])
def test_index_that_is_cut(objects, cut):
    files = packed_files([entry(3, b"abc")])
    (index,) = [path for path in files if path.endswith(".idx")]
    with objects({**files, index: files[index][:cut]}) as found:
        assert list(found) == []


def test_limits(objects, monkeypatch):
    files = {**packed_files([entry(3, b"abc")]), **loose("ab" * 20, zlib.compress(b"blob 3\0abc"))}
    with monkeypatch.context() as patch:
        patch.setattr(module, "MAX_OBJECTS", 1)
        with pytest.raises(TooLargeError, match="more than 1 objects"):
            objects(files)
    with monkeypatch.context() as patch:
        patch.setattr(module, "MAX_PACKS", 10)
        with pytest.raises(TooLargeError, match="packs"):
            objects(files)
    monkeypatch.setattr(module, "MAX_INFLATED", 5)
    with objects(files) as found, pytest.raises(TooLargeError, match="objects have more"):
        found.read("ab" * 20)
        found.read("ab" * 20)


def test_repository_that_is_too_large_is_told(repository, found, monkeypatch):
    first = repository.commit({"src/app.py": BEFORE})
    repository.commit({"src/app.py": AFTER})
    repository.git("reset", "-q", "--hard", first)
    monkeypatch.setattr(module, "MAX_INFLATED", 100)
    findings = found(FIX, repository.files())
    assert ids(findings) == ["image-not-read"]
    assert findings[0].message.startswith("the repository /app/.git was not looked into as a whole: its objects")


def test_bare_repository(repository, found):
    first = repository.commit({"src/app.py": BEFORE})
    repository.commit({"src/app.py": AFTER})
    repository.git("reset", "-q", "--hard", first)
    git = {path: content for path, content in repository.files().items() if "/.git/" in path}
    git = {path: content for path, content in git.items() if "/logs/" not in path}
    at_root = {path.removeprefix("app/.git/"): content for path, content in git.items()}
    for files in (at_root, {f"srv/mirror/{path}": content for path, content in at_root.items()}):
        assert ids(found(FIX, files)) == ["image-git-history"]


def test_links_of_a_repository_are_not_followed(repository, found):
    first = repository.commit({"src/app.py": BEFORE})
    repository.commit({"src/app.py": AFTER})
    repository.git("reset", "-q", "--hard", first)
    files = {path.replace("app/.git", "secret/git"): content for path, content in repository.files().items()}
    assert ids(found(FIX, {**files, "app/.git": ("link", "/secret/git")})) == ["image-git-history"]
    only = {path: content for path, content in files.items() if "/objects/" not in path}
    assert found(FIX, {**only, "secret/git/objects": ("link", "objects"), "app/.git": ("link", ".git")}) == ()
