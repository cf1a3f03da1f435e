import hashlib
import json

import pytest

from pytest_otval.runtimes.contents import Contents
from pytest_otval.runtimes.record import Package
from selftests.runtimes.made import write_squashfs

AT = "/opt/x"
STATUS = """Package: bash
Version: 5.2
Status: install ok installed

Package: nothing
Version: 1
Status: install ok installed

Package: removed
Version: 1
Status: deinstall ok config-files

"""
FILES = {
    f"{AT}/var/lib/dpkg/status": STATUS,
    f"{AT}/share/doc/bash/copyright": "Files: *\nLicense: GPL-3+\n text\n\nLicense: GPL-3+\nLicense: ISC\n",
    f"{AT}/lib/dist-packages/A_b-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: A_b\nVersion: 1\nLicense: MIT\n",
    f"{AT}/lib/dist-packages/c-2.dist-info/METADATA": (
        "Name: c\nVersion: 2\nLicense: long\n  text\nClassifier: License :: OSI Approved :: BSD License\n\nbody"
    ),
    f"{AT}/lib/dist-packages/d-3.dist-info/METADATA": "Name: d\nVersion: 3\nLicense-Expression: 0BSD\n",
    f"{AT}/lib/node_modules/@s/p/package.json": json.dumps({"name": "@s/p", "version": "4", "license": "MIT"}),
    f"{AT}/lib/node_modules/q/package.json": "{",
    f"{AT}/bin/tool": "x",
    "/opt/outside": "y",
}


@pytest.fixture
def contents(tmp_path):
    return Contents(write_squashfs(tmp_path / "x.sqfs", FILES, {f"{AT}/bin/link": "tool"}), AT)


def test_files_and_links(contents):
    assert contents.files["bin/tool"] == hashlib.sha256(b"x").hexdigest()
    assert contents.links == {"bin/link"}
    assert len(contents.files) == len(FILES) - 1


def test_packages(contents):
    assert contents.packages() == {
        "dpkg": {"bash": Package("5.2", "GPL-3+, ISC"), "nothing": Package("1", "")},
        "pip": {"a-b": Package("1", "MIT"), "c": Package("2", "BSD License"), "d": Package("3", "0BSD")},
        "npm": {"@s/p": Package("4", "MIT")},
    }


@pytest.mark.parametrize("path", ["/opt/y", "/opt/outside", "/opt/x/bin/tool/z"])
def test_no_such_folder(tmp_path, path):
    squashfs = write_squashfs(tmp_path / "x.sqfs", FILES)
    with pytest.raises(LookupError):
        Contents(squashfs, path)
