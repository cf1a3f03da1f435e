"""Names of records as names of tasks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.core import NAME
from pytest_otval.sources.adapters.names import MAX_NAME, decode_name, encode_name


@pytest.mark.parametrize(
    ("name", "encoded"),
    [
        ("astropy__astropy-12907", "astropy__astropy-12907"),
        ("a/b", "a_x2Fb"),
        ("..", "_x2E."),
        (".hidden", "_x2Ehidden"),
        ("a_x2Fb", "a_x5Fx2Fb"),
        ("ü 1", "_xC3_xBC_x201"),
    ],
)
def test_only_what_cannot_stand_in_a_node_id_is_written_otherwise(name, encoded):
    assert encode_name(name) == encoded
    assert decode_name(encoded) == name


@pytest.mark.parametrize("name", ["", "a\nb", "a\0b", "\x1b[31m", "\udc80", "a" * (MAX_NAME + 1), "/" * 100])
def test_what_nobody_could_read_is_no_name(name):
    with pytest.raises(ValueError):
        encode_name(name)


@given(st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=40))
def test_a_name_comes_back(name):
    try:
        encoded = encode_name(name)
    except ValueError:
        return
    assert NAME.fullmatch(encoded)
    assert not encoded.startswith(".")
    assert decode_name(encoded) == name


@given(st.text("_x25Fa", min_size=1, max_size=12))
def test_a_name_that_looks_written_otherwise_comes_back(name):
    assert decode_name(encode_name(name)) == name
