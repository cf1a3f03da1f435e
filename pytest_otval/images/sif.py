"""Where the squashfs lies in a SIF file. The file is hostile; nothing of it runs, and it is not mounted.

The format is that of https://github.com/apptainer/sif/tree/main/pkg/sif (``header`` and ``rawDescriptor``); all numbers
are little-endian.
"""

from __future__ import annotations

import struct
from typing import BinaryIO

_HEADER = struct.Struct("<32s10s3s3s16s8q")
_DESCRIPTOR = struct.Struct("<i?III7q128s384s")
_PARTITION = struct.Struct("<ii3s")
_MAGIC = b"SIF_MAGIC\0"
_MAX_DESCRIPTORS = 1024
_PARTITION_TYPE, _SQUASHFS, _PRIMARY, _OVERLAY = 0x4004, 1, 2, 4


class SifError(Exception):
    """The file is no SIF image that can be taken apart; the text says why."""


def squashfs_in_sif(file: BinaryIO, size: int) -> tuple[int, int]:
    """Return where the root file system begins in a SIF file of ``size`` bytes, and how long it is. Raises SifError."""
    head = file.read(_HEADER.size)
    if len(head) < _HEADER.size:
        raise SifError("it is no SIF file")
    fields = _HEADER.unpack(head)
    total, offset = fields[8], fields[9]
    if fields[1] != _MAGIC:
        raise SifError("it is no SIF file")
    if not 0 <= total <= _MAX_DESCRIPTORS or not 0 < offset < size:
        raise SifError("its header makes no sense")
    file.seek(offset)
    table = file.read(total * _DESCRIPTOR.size)
    if len(table) < total * _DESCRIPTOR.size:
        raise SifError("it is truncated")
    found = None
    for descriptor in _DESCRIPTOR.iter_unpack(table):
        kind, used, start, length, extra = descriptor[0], descriptor[1], descriptor[5], descriptor[6], descriptor[13]
        if kind != _PARTITION_TYPE or not used:
            continue
        file_system, role, _ = _PARTITION.unpack_from(extra)
        if role == _OVERLAY:
            raise SifError("it has layers over its root: export that image as a bundle")
        if role == _PRIMARY:
            if file_system != _SQUASHFS:
                raise SifError("its root is no squashfs, perhaps encrypted")
            found = start, length
    if found is None:
        raise SifError("it has no root file system")
    if found[0] < _HEADER.size or found[1] < 0 or found[0] + found[1] > size:
        raise SifError("it is truncated")
    return found
