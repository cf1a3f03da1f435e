import pytest

from pytest_otval.sources.files import File, SourceError, text
from pytest_otval.sources.releases.needs import Metadata, licence_of, parsed_requirement, requirements_of, undeclared


def info(*lines):
    return text("Metadata-Version: 2.1\nName: thing\n" + "".join(f"{line}\n" for line in lines))


def needed(files):
    return [str(one) for one in requirements_of(Metadata(files), files)]


def test_what_the_package_and_its_tests_need_is_read():
    files = {
        "PKG-INFO": info(
            "Requires-Dist: six>=1",
            "Requires-Dist: old; python_version < '3'",
            "Requires-Dist: win; sys_platform == 'win32'",
            "Requires-Dist: helper[x]; extra == 'test'",
            "Requires-Dist: sphinx; extra == 'docs'",
        ),
        "pyproject.toml": text('[dependency-groups]\ntests = ["grouped", {include-group = "x"}]\ndocs = ["no"]\n'),
    }
    assert needed(files) == ["six>=1", 'helper[x]; extra == "test"', "grouped"]


def test_a_list_of_setuptools_is_read_where_the_metadata_have_none():
    files = {"PKG-INFO": info(), "thing.egg-info/requires.txt": text("six\n\n[testing]\nhelper\n\n[docs]\nsphinx\n")}
    assert needed(files) == ["six", 'helper; extra == "testing"']


def test_the_metadata_at_the_top_count():
    files = {"a/PKG-INFO": info("Requires-Dist: wrong"), "PKG-INFO": info("Requires-Dist: right")}
    assert needed(files) == ["right"]


@pytest.mark.parametrize("line", ["thing @ https://host/x.whl", "thing @ git+https://host/x", "--index-url=x", "-r x"])
def test_pip_is_given_nothing_but_names_on_an_index(line):
    with pytest.raises(SourceError):
        parsed_requirement(line)
    with pytest.raises(SourceError):
        needed({"PKG-INFO": info(f"Requires-Dist: {line}")})


@pytest.mark.parametrize(
    ("lines", "licence"),
    [
        (["License-Expression: MIT", "License: other"], "MIT"),
        (["License: BSD-3-Clause"], "BSD-3-Clause"),
        (["License: UNKNOWN", "Classifier: License :: OSI Approved :: ISC License (ISCL)"], "ISC License (ISCL)"),
        (["License: " + "long " * 40, "Classifier: License :: OSI Approved :: MIT License"], "MIT License"),
    ],
)
def test_the_licence_is_named_in_the_packages_words(lines, licence):
    assert licence_of(Metadata({"PKG-INFO": info(*lines)})) == licence


@pytest.mark.parametrize("lines", [[], ["License: "], ["License: a\x1b[2J"]])
def test_without_a_licence_it_is_refused(lines):
    with pytest.raises(SourceError, match="name no licence"):
        licence_of(Metadata({"PKG-INFO": info(*lines)}))


def test_without_metadata_it_is_refused():
    with pytest.raises(SourceError, match="has no PKG-INFO"):
        Metadata({"setup.py": text("")})


def test_what_tests_import_and_nothing_brings_is_told():
    source = "import os, missing.sub\nfrom wheel.x import y\nfrom . import near\nfrom helper import z\n"
    files = {
        "thing/__init__.py": text("import ofcode\n"),
        "tests/test_a.py": text(source + "try:\n import may\nexcept ImportError: pass\ndef f():\n import late\n"),
        "tests/conftest.py": text("import another"),
        "tests/helper.py": text("import foreign"),
        "tests/test_broken.py": text("def ("),
        "tests/test_binary.py": File(b"\0\xff"),
        "docs/conf.py": text("import sphinx"),
    }
    assert undeclared(files, ("tests",), frozenset({"wheel"})) == ["another", "missing"]
