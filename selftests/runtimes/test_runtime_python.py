from pathlib import Path

import pytest

from pytest_otval.runtimes.python import image_python, only_in_image
from pytest_otval.runtimes.record import Runtime
from selftests.runtimes.made import write_squashfs


@pytest.mark.parametrize(
    ("files", "path", "found"),
    [
        (["/usr/bin/python3"], "/usr/local/bin:/usr/bin", "/usr/bin/python3"),
        (["/usr/bin/python3", "/opt/venv/bin/python3"], "/opt/venv/bin/:/usr/bin", "/opt/venv/bin/python3"),
        (["/usr/bin/python"], "/usr/bin", "python3"),
        (["/usr/bin/python3"], "bin:usr/bin::", "python3"),
        (["/usr/bin"], "/usr/bin/x:/usr/bin", "python3"),
    ],
)
def test_python_of_an_image(tmp_path, files, path, found):
    image = write_squashfs(tmp_path / "image.sqfs", dict.fromkeys(files, ""))
    assert image_python((image,), {"PATH": path}) == found


def test_python_of_an_image_that_cannot_be_read(tmp_path):
    assert image_python((Path("/nowhere.sqfs"),), {}) == "python3"


OWN = ["lib/python3.11/json/__init__.py", "lib/python3.11/site-packages/pytest/__init__.py", "bin/python3"]
SITE = "/usr/lib/python3/dist-packages"


def asked(tmp_path, test, files=(), python="/usr/bin/python3"):
    """What tests need of an image with some files."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_x.py").write_text(test)
    image = write_squashfs(tmp_path / "image.sqfs", {"/usr/bin/python3": "", **dict(files)})
    runtime = Runtime("0" * 64, "x-000000000000", "/opt/x", 1, "b", "k", "bin/python3", files=dict.fromkeys(OWN, ""))
    return only_in_image([tmp_path / "tests", tmp_path / "none"], runtime, [image], python, "/app")


@pytest.mark.parametrize(
    ("test", "needed"),
    [
        ("import os, json, pytest", []),
        ("import os, numpy.linalg as n", ["numpy"]),
        ("def test():\n    from yaml import load", ["yaml"]),
        ("from fast import x", ["fast"]),
        ("import unknown", []),
        ("from . import numpy", []),
        ("import numpy, (", []),
    ],
)
def test_what_the_images_python_alone_has(tmp_path, test, needed):
    files = {f"{SITE}/numpy/__init__.py": "", "/usr/local/lib/python3.11/dist-packages/yaml.py": ""}
    files |= {f"{SITE}/pytest/__init__.py": "", f"{SITE}/fast.cpython-311-x86_64-linux-gnu.so": ""}
    assert asked(tmp_path, test, files) == needed


def test_an_environment_of_the_image(tmp_path):
    files = {"/opt/venv/lib/python3.12/site-packages/numpy/__init__.py": ""}
    assert asked(tmp_path, "import numpy", files, "/opt/venv/bin/python3") == ["numpy"]


def test_what_the_product_imports(tmp_path):
    files = {"/app/product/deep/code.py": "import numpy", "/app/mod.py": "import yaml"}
    files |= {f"{SITE}/{name}/__init__.py": "" for name in ("numpy", "yaml", "other")}
    assert asked(tmp_path, "import product, mod", files) == ["numpy", "yaml"]


def test_hostile_files(tmp_path):
    import os

    (tmp_path / "tests").mkdir()
    os.mkfifo(tmp_path / "tests" / "pipe.py")
    (tmp_path / "tests" / "binary.py").write_bytes(b"\0\xff import numpy")
    (tmp_path / "tests" / "deep.py").write_text("(" * 5000)
    (tmp_path / "tests" / "link.py").symlink_to("/etc/passwd")
    runtime = Runtime("0" * 64, "x-000000000000", "/opt/x", 1, "b", "k", "bin/python3")
    assert only_in_image([tmp_path / "tests"], runtime, [Path("/nowhere.sqfs")], "python3", "/app") == []
