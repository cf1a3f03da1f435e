"""The packages are looked for where the system has them, with whatever Python runs the tests."""

import sys
from importlib.metadata import distributions

SITE = "/usr/local/lib/python3.11/dist-packages"
sys.path.append(SITE)


def test_version():
    assert [found.version for found in distributions(name="units", path=[SITE])] == ["2.0"]


def test_factor():
    from units import miles_to_km

    assert type(miles_to_km(100)) is float
    assert abs(miles_to_km(100) - 160.9344) < 1e-9
