"""No more at a time than there are slots, whatever becomes of who holds one."""

import os
import signal
import subprocess
import sys
import threading

from pytest_otval.sandbox.slots import Slots


def test_no_more_at_a_time_than_slots(tmp_path):
    inside, most = [], []

    def work():
        with Slots(tmp_path, "start", 2).one():
            inside.append(1)
            most.append(len(inside))
            both.wait(60)
            inside.pop()

    both = threading.Barrier(2)
    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(most) == 8 and max(most) == 2


def test_none_is_no_limit(tmp_path):
    slots = Slots(tmp_path, "start", None)
    with slots.one(), slots.one():
        assert list(tmp_path.iterdir()) == []


def test_a_killed_process_gives_its_slot_back(tmp_path):
    script = (
        "import sys, time; from pathlib import Path; from pytest_otval.sandbox.slots import Slots\n"
        "with Slots(Path(sys.argv[1]), 'start', 1).one():\n print('held', flush=True)\n time.sleep(600)"
    )
    holder = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "held\n"
    os.kill(holder.pid, signal.SIGKILL)
    holder.communicate()
    with Slots(tmp_path, "start", 1).one():
        pass
