"""--chmod, compared with the chmod program."""

import os
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.images.modes import changed_mode, folder_mode, parsed_mode


@pytest.mark.parametrize(("text", "mode"), [("755", "755"), ("0640", "640"), ("0", "0"), ("00007777", "7777")])
def test_octal(text, mode):
    assert parsed_mode(text) == mode
    assert changed_mode(mode, 0o123, is_folder=False) == int(text, 8) == folder_mode(mode)


@pytest.mark.parametrize("text", ["", "8", "10000", "64a", "u", "+q", "x=r", "u+r,", "u=rw g=r", "9" * 5000])
def test_nonsense(text):
    with pytest.raises(ValueError, match="invalid mode"):
        parsed_mode(text)


@pytest.mark.parametrize(
    "mode",
    ["+x", "a+X", "go-w", "u=rw,g=r,o=r", "u=rwX,go=rX", "u+rw,g+r,o-x,o+w", "g=u", "o=g,u-w+x", "a=", "ug+s", "+t"],
)
@pytest.mark.parametrize("before", [0o644, 0o755, 0o600, 0o124, 0o666, 0o777])
@pytest.mark.parametrize("is_folder", [False, True])
def test_symbolic_as_chmod_does(tmp_path, mode, before, is_folder):
    path = tmp_path / "x"
    path.mkdir() if is_folder else path.touch()
    path.chmod(before)
    # Without a letter for whom, the program heeds the umask.
    subprocess.run(["sh", "-c", 'umask 0; chmod -- "$1" "$2"', "sh", mode, str(path)], check=True)
    assert changed_mode(parsed_mode(mode), before, is_folder) == os.stat(path).st_mode & 0o7777
    assert folder_mode(mode) == 0o755


@given(st.text(alphabet="ugoa+-=rwxXst,078"), st.integers(0, 0o7777), st.booleans())
def test_any_mode_is_refused_or_gives_bits(text, before, is_folder):
    try:
        mode = parsed_mode(text)
    except ValueError as error:
        assert "\n" not in str(error)
        return
    assert 0 <= changed_mode(mode, before, is_folder) <= 0o7777
