"""Image names, and where a site has the same images."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.images.reference import Mirrors, Reference, parse_reference

DIGEST = "sha256:" + "ab" * 32


@pytest.mark.parametrize(
    ("name", "full"),
    [
        ("debian", "docker.io/library/debian:latest"),
        ("debian:12", "docker.io/library/debian:12"),
        ("user/app:1", "docker.io/user/app:1"),
        ("docker.io/debian", "docker.io/library/debian:latest"),
        ("index.docker.io/debian", "docker.io/library/debian:latest"),
        ("ghcr.io/a/b/c:20250624", "ghcr.io/a/b/c:20250624"),
        ("localhost/a", "localhost/a:latest"),
        ("host:5000/a:1", "host:5000/a:1"),
        (f"a/b@{DIGEST}", f"docker.io/a/b@{DIGEST}"),
        (f"a/b:1@{DIGEST}", f"docker.io/a/b@{DIGEST}"),
    ],
)
def test_full_names(name, full):
    assert str(parse_reference(name)) == full


@pytest.mark.parametrize(
    "name", ["", "A", "{image}", "a b", "a:", "a@sha256:12", "http://a/b", "docker://a", "Abc/d", "a//b:", "a" * 600]
)
def test_no_names(name):
    with pytest.raises(ValueError, match="is no image name") as caught:
        parse_reference(name)
    assert len(str(caught.value)) < 200


@given(st.text(max_size=80) | st.from_regex(r"[a-z./:@A-Z0-9_-]{0,80}", fullmatch=True))
def test_any_text_is_a_name_or_none(text):
    try:
        reference = parse_reference(text)
    except ValueError:
        return
    assert parse_reference(str(reference)).repository == reference.repository


@pytest.mark.parametrize(
    ("name", "mirror"),
    [
        ("debian:12", "m.org/hub/library/debian:12"),
        ("ghcr.io/own/app:1", "m.org:5000/own/app:1"),
        ("ghcr.io/own/deep/app:1", "deep.org/app:1"),
        ("ghcr.io/own/deeper:1", "m.org:5000/own/deeper:1"),
        ("quay.io/a:1", None),
        ("ghcr.io.evil.org/a:1", None),
    ],
)
def test_longest_prefix_counts(name, mirror):
    mirrors = Mirrors({"docker.io": "m.org/hub", "ghcr.io": "m.org:5000", "ghcr.io/own/deep": "deep.org"})
    places = [str(place) for place in mirrors.places(parse_reference(name))]
    assert places == [*([mirror] if mirror else []), str(parse_reference(name))]


def test_mirror_keeps_the_digest():
    places = Mirrors({"docker.io/library": "m.org/x/y"}).places(parse_reference(f"debian:1@{DIGEST}"))
    assert places[0] == Reference("m.org", "x/y/debian", "1", DIGEST)
