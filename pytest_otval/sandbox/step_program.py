"""The first program of a step: gets descriptors and a command line over a socket, runs it, tells how it ended.

Run by path, without site packages: it imports nothing but the standard library.
"""

import array
import contextlib
import json
import os
import socket
import sys
from typing import Any


def main(name: str) -> None:
    """Connect to the abstract socket ``name`` and do what is asked there."""
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    link.connect(f"\0{name}")
    found = array.array("i")
    _, parts, _, _ = link.recvmsg(1, socket.CMSG_SPACE(3 * found.itemsize))
    for _, _, data in parts:
        found.frombytes(data[: len(data) - len(data) % found.itemsize])
    order = json.loads(link.makefile("rb").readline())
    begun, begins = os.pipe()
    pid = os.fork()
    if pid == 0:
        _become(order, list(found))
    for descriptor in (begins, *found):
        os.close(descriptor)
    # Until the program, or what becomes it, leads its session and has nothing else open.
    os.read(begun, 1)
    link.sendall(f"{pid}\n".encode())
    _, status = os.waitpid(pid, 0)
    with contextlib.suppress(OSError):
        link.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())


def _become(order: dict[str, Any], descriptors: list[int]) -> None:
    """Replace this process by the program."""
    try:
        os.setsid()
        # Slurm may have given the step other cores; they are as many.
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, [int(core) for core in order["cores"]])
        for target, descriptor in enumerate(descriptors):
            os.dup2(descriptor, target)
        os.closerange(3, 1024)
        os.chdir("/")
        os.execve(order["argv"][0], order["argv"], dict(order["env"]))
    finally:
        os._exit(127)


if __name__ == "__main__":
    main(sys.argv[1])
