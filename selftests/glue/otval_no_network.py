"""A pytest plugin under which this process and its Python threads reach no other machine."""

import socket

CONNECT = socket.socket.connect


def refuse(self, address):
    if self.family != socket.AF_UNIX:
        raise AssertionError(f"a connection to {address}")
    return CONNECT(self, address)


socket.socket.connect = refuse
