import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.task.keep import keep_of


def keep(value):
    return keep_of({"otval": {"keep": value}})


def test_entries():
    assert keep(["pkg:numpy", "/opt/venv/", "/srv/a b"]) == ("pkg:numpy", "/opt/venv", "/srv/a b")
    assert keep_of({}) == keep_of({"otval": 3}) == ()


@pytest.mark.parametrize(
    "entry",
    [
        3,
        "numpy",
        "pkg:",
        "pkg:a/b",
        "pkg:-x",
        "a/b",
        "/",
        "//",
        "/a/../b",
        "/proc/1",
        "/tests",
        "/logs/x",
        "/a\nb",
        "",
        "/.otval-inbox/x",
        "/.otval",
    ],
)
def test_what_is_none(entry):
    with pytest.raises(ValueError, match=r"\S"):
        keep([entry])


def test_no_list():
    with pytest.raises(ValueError, match="is no list"):
        keep("pkg:numpy")


@given(st.lists(st.one_of(st.text(), st.integers(), st.none())))
def test_any_list(entries):
    try:
        assert all(entry.startswith(("/", "pkg:")) for entry in keep(entries))
    except ValueError as error:
        assert str(error)
