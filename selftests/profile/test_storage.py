import pytest
from pydantic import ValidationError

from pytest_otval.profile import ModulesSection, StorageSection

PLACE = {"exports": "OT_STORAGE_WORK", "purpose": "project files"}


def test_a_place_by_variable_or_path():
    assert StorageSection(variable="WORK", **PLACE).path is None
    assert StorageSection(path="/data/horse/ws", files_soft=1, files_hard=1, **PLACE).files_hard == 1


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({}, "either a variable or a path"),
        ({"variable": "WORK", "path": "/x"}, "either a variable or a path"),
        ({"variable": "$WORK"}, "no name of a variable"),
        ({"path": "/data/../etc"}, "without .."),
        ({"path": "/data/$(id)"}, "letters, digits"),
        ({"path": "/x", "exports": "PATH"}, "no name as OT_STORAGE_WORK"),
        ({"path": "/x", "purpose": "two\nlines"}, "one line"),
        ({"path": "/x", "gb_soft": 200, "gb_hard": 100}, "gb_soft 200 is more than gb_hard 100"),
        ({"path": "/x", "files_soft": 2, "files_hard": 1}, "files_soft 2 is more than files_hard 1"),
        ({"path": "/x", "files_hard": 0}, "greater than or equal to 1"),
    ],
)
def test_a_wrong_place(change, says):
    with pytest.raises(ValidationError, match=says.replace("$", r"\$")):
        StorageSection(**{**PLACE, **change})


@pytest.mark.parametrize("name", ["", "cuda 12", "-a", "cuda;id", "$(id)", "'x'"])
def test_a_module_is_a_name(name):
    with pytest.raises(ValidationError, match="no name of a module"):
        ModulesSection(load=(name,))


def test_modules():
    modules = ModulesSection(load=("cuda/12.8.1", "gcc/13+x"), init=("/etc/profile.d/modules.sh",))
    assert modules.load[0] == "cuda/12.8.1"
    with pytest.raises(ValidationError, match="must be absolute"):
        ModulesSection(init=("etc/profile",))
