import pytest

from pytest_otval.sources.files import SourceError, text
from pytest_otval.sources.releases.layout import Layout, find_layout


def tree(*paths, **contents):
    return {path: text("") for path in paths} | {path: text(content) for path, content in contents.items()}


@pytest.mark.parametrize(
    ("project", "paths", "found"),
    [
        ("thing", ("thing/__init__.py", "tests/test_a.py"), Layout(None, ("thing",), ("tests",), ())),
        ("thing", ("src/thing/__init__.py", "tests/test_a.py"), Layout("src", ("src/thing",), ("tests",), ())),
        ("py-thing", ("py_thing.py", "setup.py", "test_a.py"), Layout(None, ("py_thing.py",), ("test_a.py",), ())),
        ("python-thing", ("thing/__init__.py", "test/a_test.py"), Layout(None, ("thing",), ("test",), ())),
        # The only package below src/, whatever it is called.
        ("x", ("src/other/__init__.py", "tests/test_a.py"), Layout("src", ("src/other",), ("tests",), ())),
        ("t", ("t/__init__.py", "t/tests/test_a.py"), Layout(None, ("t",), ("t/tests",), ())),
        # A folder of that name without tests is none of a suite.
        ("t", ("t/__init__.py", "tests/data.py", "t/test/test_a.py"), Layout(None, ("t",), ("t/test",), ())),
        ("t", ("t.py", "tests/test_a.py", "conftest.py"), Layout(None, ("t.py",), ("tests",), ("conftest.py",))),
    ],
)
def test_code_and_tests_are_found(project, paths, found):
    assert find_layout(project, tree(*paths)) == found


def test_what_the_project_itself_says_counts():
    files = tree("a/__init__.py", "zed.py", "other/__init__.py", "tests/test_a.py")
    files["x.egg-info/top_level.txt"] = text("zed\na\n")
    assert find_layout("zed", files).code == ("a", "zed.py")
    assert find_layout("a", files).code == ("zed.py", "a")


@pytest.mark.parametrize(
    ("said", "suite"),
    [("[tool.pytest.ini_options]\n", ("pyproject.toml",)), ("[tool.ruff]\n", ()), ("no toml", ()), ("\xff", ())],
)
def test_a_configuration_is_taken_where_it_speaks_of_pytest(said, suite):
    files = tree("t.py", "tests/test_a.py") | {"pyproject.toml": text(said)}
    assert find_layout("t", files).suite == suite


@pytest.mark.parametrize(
    ("paths", "words"),
    [
        (("a/__init__.py", "b/__init__.py", "tests/test_a.py"), "its code is not found"),
        (("t.py", "tests/data.py"), "its source archive has no tests"),
        ((), "its code is not found"),
    ],
)
def test_what_cannot_be_told_is_refused(paths, words):
    with pytest.raises(SourceError, match=words):
        find_layout("t", tree(*paths))
