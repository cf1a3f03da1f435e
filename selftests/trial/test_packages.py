"""Which files are those of a Python distribution; what changed is hostile."""

import pytest

from pytest_otval.trial.packages import MAX_NAMES, SITES, changed_packages, kept_with, patterns_of
from selftests.runtimes.made import write_squashfs

SITE = "/opt/venv/lib/python3.11/site-packages"


def changed(*paths, new=()):
    return changed_packages(paths, (), lambda path: path in new)


@pytest.mark.parametrize(
    ("path", "names"),
    [
        (f"{SITE}/Big_Thing-2.0.dist-info/RECORD", ["big-thing"]),
        (f"{SITE}/gone-1.dist-info", ["gone"]),
        ("/usr/lib/python3/dist-packages/from_apt-1.egg-info/PKG-INFO", ["from-apt"]),
        (f"{SITE}/thing/x-1.dist-info/RECORD", []),
        (f"{SITE}/-1.dist-info/RECORD", []),
        (f"{SITE}/\x1b[2J-1.dist-info/RECORD", []),
        ("/opt/.venv/lib/python3.11/site-packages/hidden-1.dist-info/RECORD", []),
        ("/usr/lib/python3/elsewhere-packages/x-1.dist-info/RECORD", []),
        ("/app/lib/python3.11/site-packages/x-1.dist-info/RECORD", []),
        ("/usr/lib/python3/a/dist-packages/x-1.dist-info/RECORD", []),
        (f"{SITE}/", []),
        (SITE, []),
    ],
)
def test_whose_metadata_changed(path, names):
    assert changed(path) == names


def test_a_new_site_folder_is_for_its_paths():
    assert changed(f"{SITE}/x-1.dist-info/RECORD", new=[SITE]) == []


def test_there_are_not_too_many():
    assert len(changed(*(f"{SITE}/n{number}-1.dist-info" for number in range(1000)))) == MAX_NAMES


def test_no_record_of_the_trial_is_asked(tmp_path):
    """It could name anybody's files; the image's own record names modules and no programs."""
    record = "yaml/__init__.py,,\n../../../bin/x,,\nevil.pth,,\n"
    image = write_squashfs(tmp_path / "image.sqfs", {f"{SITE}/PyYAML-6.0.dist-info/RECORD": record})
    is_kept = kept_with(["pyyaml"], (image,))
    for entry in ("yaml/__init__.py", "PyYAML-7.0.dist-info/RECORD", "pyyaml.py", "PyYaml.libs/x.so", "yaml"):
        assert is_kept(f"{SITE}/{entry}"), entry
    for path in (f"{SITE}/evil.pth", f"{SITE}/yaml2/x", f"{SITE}/pip/x", "/opt/venv/bin/x", "/opt/venv/yaml/x"):
        assert not is_kept(path), path
    assert not kept_with([], (image,))(f"{SITE}/yaml/x")


def test_patterns_are_of_all_places():
    assert {pattern.rpartition("/")[0] for pattern in patterns_of("x", ())} == set(SITES)


def test_a_record_of_an_image_names_no_more_modules_than_one_can_carry(tmp_path):
    record = "".join(f"module{number}/__init__.py,,\n" for number in range(100_000))
    image = write_squashfs(tmp_path / "image.sqfs", {f"{SITE}/many-1.dist-info/RECORD": record})
    assert len(patterns_of("many", (image,))) < 10_000
