"""What a runtime's manifest tells of what tests can import there."""

from pytest_otval.harden.facts import Contents
from pytest_otval.runtimes.record import Package, Runtime


def test_modules_and_distributions():
    files = [
        "lib/python3.11/site-packages/yaml/__init__.py",
        "lib/python3/dist-packages/six.py",
        "lib/python3.11/site-packages/_yaml.cpython-311-x86_64-linux-gnu.so",
        "lib/python3.11/site-packages/google/protobuf/message.py",
        "lib/python3.11/site-packages/yaml-6.0.dist-info/METADATA",
        "lib/python3.11/json/__init__.py",
        "bin/tool.py",
    ]
    packages = {"pip": {"Py_YAML.x": Package("6")}, "dpkg": {"bash": Package("5")}}
    runtime = Runtime(
        "0" * 64, "x-000000000000", "/opt/x", 1, "b", "k", "bin/python3", "", packages, dict.fromkeys(files, "")
    )
    contents = Contents.of(runtime)
    assert contents.modules == {"yaml", "six", "_yaml", "google"}
    assert contents.distributions == {"py-yaml-x"}
