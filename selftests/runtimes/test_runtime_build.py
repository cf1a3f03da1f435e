"""Saving what was installed, without a container."""

import pytest

from pytest_otval.core import Conclusion
from pytest_otval.images.model import Image, ImageConfig
from pytest_otval.profile import BuildSection
from pytest_otval.runtimes.build import Installation, Installer
from pytest_otval.runtimes.store import Runtimes
from selftests.runtimes.made import write_squashfs

FOLDER = "/opt/otval/runtimes/tools"


@pytest.mark.parametrize("python", ["", "bin/python3", "bin/link", "bin/link/python3"])
def test_the_python_that_a_recipe_names_has_to_be_there(tmp_path, python):
    runtimes = Runtimes(tmp_path)
    image = Image("0" * 64, (), "1" * 64, "bootstrap:fake@0", ImageConfig())
    script = (tmp_path / "mine", "/seen", "install.sh", 9.0, {})
    installation = Installation(f"tools-{'0' * 12}", FOLDER, image, *script, python=python)
    installer = Installer(runtimes, None, BuildSection(), tmp_path, None)
    half = write_squashfs(tmp_path / "half", {f"{FOLDER}/bin/x": "x"}, {f"{FOLDER}/bin/link": "x"})
    if python == "bin/python3":
        with pytest.raises(
            Conclusion, match=r"mine/install\.sh did not install .*/tools/bin/python3: let it"
        ) as caught:
            installer._publish(installation, half)
        assert caught.value.reason == "setup-failed"
        return
    assert installer._publish(installation, half).python == python
    assert runtimes.newest(installation.id).python == python
