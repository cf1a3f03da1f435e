"""What can be read, whatever numbers descriptors have."""

import os
import resource
import socket

from pytest_otval.sandbox.readable import readable


def test_what_has_something_and_what_ended_can_be_read():
    ours, theirs = socket.socketpair()
    read, write = os.pipe()
    assert readable([ours, read], 0) == []
    theirs.send(b"x")
    assert readable([ours, read], 0) == [ours]
    os.close(write)
    assert set(readable([ours, read])) == {ours, read}
    for one in (ours, theirs):
        one.close()
    os.close(read)


def test_descriptors_above_those_of_select():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4096)), hard))
    read, write = os.pipe()
    high = 2000
    os.dup2(read, high)
    try:
        assert readable([high], 0.001) == []
        os.write(write, b"x")
        assert readable([high], 1) == [high]
    finally:
        for one in (read, write, high):
            os.close(one)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
