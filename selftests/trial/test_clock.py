"""Which libfaketime is taken."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pytest_otval.core import Conclusion
from pytest_otval.trial import clock


@pytest.fixture(autouse=True)
def forgotten():
    clock.clock_library.cache_clear()
    yield
    clock.clock_library.cache_clear()


def offered(monkeypatch, *paths):
    monkeypatch.setattr(clock, "_candidates", lambda: iter(paths))


def test_a_library_that_is_none_is_passed_over(monkeypatch, tmp_path):
    (tmp_path / "text.so").write_text("no library")
    offered(monkeypatch, tmp_path / "absent.so", tmp_path / "text.so")
    with pytest.raises(Conclusion) as error:
        clock.clock_library()
    assert error.value.reason == "missing-tool"
    assert error.value.headline == f"{tmp_path}/text.so breaks programs that wait: {clock.REMEDY}"


def test_no_library(monkeypatch):
    offered(monkeypatch)
    with pytest.raises(Conclusion, match="there is no libfaketime: pip install"):
        clock.clock_library()


def test_the_library_that_set_up_installs_is_sound():
    """Waiting works under it, in threads too, and children follow it, those of another user as well."""
    script = (
        "import os, subprocess, threading, time\n"
        "before = time.monotonic(); time.sleep(0.05); threading.Event().wait(0.05)\n"
        "assert 0.1 <= time.monotonic() - before < 30\n"
        "other = {'user': 65534} if os.getuid() == 0 else {}\n"
        "print(int(time.time()), subprocess.run(['date', '+%s'], stdout=-1, text=True, check=True, **other).stdout)"
    )
    library = clock.clock_library()
    # Where another user may read it.
    copy = Path("/tmp") / f"otval-selftest-{os.getpid()}.so"
    copy.write_bytes(library.read_bytes())
    try:
        env = {**os.environ, "LD_PRELOAD": str(copy), **clock.clock_variables(-400 * 86400)}
        argv = [sys.executable, "-c", script]
        done = subprocess.run(argv, env=env, capture_output=True, text=True, check=True)
    finally:
        copy.unlink()
    assert done.stderr == ""
    for told in done.stdout.split():
        assert abs(int(told) - time.time() + 400 * 86400) < 60
