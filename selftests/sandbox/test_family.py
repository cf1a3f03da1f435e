"""Processes below a process."""

import os
import subprocess
import sys
import time

import psutil
import pytest

from pytest_otval.sandbox import family
from pytest_otval.sandbox.family import descendants

TREE = """
import subprocess, sys, threading, time
def start():
    subprocess.Popen(["sh", "-c", "sleep 60 & sleep 60 & echo ready; wait"])
threading.Thread(target=start).start()
time.sleep(60)
"""


@pytest.mark.parametrize("listed", [True, False])
def test_children_of_all_threads_and_theirs(monkeypatch, listed):
    monkeypatch.setattr(family, "_LISTED", listed)
    process = subprocess.Popen([sys.executable, "-c", TREE], stdout=subprocess.PIPE, start_new_session=True)
    try:
        process.stdout.readline()
        deadline = time.monotonic() + 20
        while len(psutil.Process(process.pid).children(recursive=True)) < 3:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        found = descendants(process.pid)
        known = {child.pid: child.ppid() for child in psutil.Process(process.pid).children(recursive=True)}
        assert sorted(found) == sorted(known)
        for place, pid in enumerate(found):
            assert known[pid] == process.pid or known[pid] in found[:place]
    finally:
        os.killpg(process.pid, 9)
        process.communicate()


@pytest.mark.parametrize("listed", [True, False])
def test_a_process_that_is_gone(monkeypatch, listed):
    monkeypatch.setattr(family, "_LISTED", listed)
    process = subprocess.Popen(["true"])
    process.wait()
    assert descendants(process.pid) == []
