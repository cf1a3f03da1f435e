"""Takes from programs and libraries the places where they look for code in the image's own folders.

An agent that is root may write /etc/ld.so.preload, /etc/nsswitch.conf or /etc/ssl/openssl.cnf, and each makes a process
load a library of its choice. The names are constants of the files; each is overwritten by one of the same length that
cannot exist: /dev/null is no folder, and /dev is made anew for each container.

    seal.py libc LIBRARIES LOADER    seals the C library of a folder, and its loader
    seal.py names FILE NAME...       overwrites names in a file
"""

import os
import sys
from pathlib import Path

NOWHERE = b"/dev/null/"


def replaced(name: bytes) -> bytes:
    """Return a path of the same length that cannot exist, with the same slash at its end."""
    slash = b"/" if name.endswith(b"/") else b""
    kept = len(name) - len(slash)
    return NOWHERE[:kept].ljust(kept, b"-") + slash


def seal(file: Path, *names: bytes) -> None:
    """Overwrite names in a file, which has to hold them all."""
    data = file.read_bytes()
    for name in names:
        if name not in data:
            sys.exit(f"{file}: {name!r} is not in it: look how this version names it")
        data = data.replace(name, replaced(name))
    write(file, data)


def write(file: Path, data: bytes) -> None:
    """Write a file through a new one, as this one may be in use."""
    half = file.with_name(file.name + ".new")
    half.write_bytes(data)
    half.chmod(file.stat().st_mode)
    half.replace(file)


def seal_libc(libraries: Path, loader: Path) -> None:
    """Seal loader and C library, with the folders that the loader trusts."""
    folder = b"/lib/" + os.fsencode(libraries.name)
    seal(loader, b"/etc/ld.so.preload", b"/etc/ld.so.cache")
    trusted = b"\0".join((folder + b"/", b"/usr" + folder + b"/", b"/lib/", b"/usr/lib/"))
    data = loader.read_bytes()
    if trusted not in data:
        sys.exit(f"{loader}: the folders that it trusts are not where they were")
    # /lib/ has no room for what stands elsewhere.
    sealed = b"\0".join((replaced(folder + b"/"), replaced(b"/usr" + folder + b"/"), b"/dev/", b"/dev/---/"))
    write(loader, data.replace(trusted, sealed))
    seal((libraries / "libc.so.6").resolve(), b"/etc/nsswitch.conf", b"/usr" + folder + b"/gconv")


what, first, *rest = sys.argv[1:]
if what == "libc":
    seal_libc(Path(first), Path(rest[0]).resolve())
else:
    seal(Path(first).resolve(), *map(os.fsencode, rest))
