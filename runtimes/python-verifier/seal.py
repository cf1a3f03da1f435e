"""Takes from the C library, its loader and OpenSSL the places where they look for code in the image's own folders.

An agent that is root may write /etc/ld.so.preload, /etc/nsswitch.conf or /etc/ssl/openssl.cnf, and each makes a process
load a library of its choice. The names are constants of the files; each is overwritten by one of the same length that
cannot exist, since /dev/null is no folder.
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


def seal(file: Path, names: list[bytes], needed: int) -> None:
    """Overwrite names in a file, at least ``needed`` of them; through a new file, as this one may be in use."""
    data, found = file.read_bytes(), 0
    for name in names:
        found += name in data
        data = data.replace(name, replaced(name))
    if found < needed:
        sys.exit(f"{file}: only {found} of {names} are in it: look how this version names them")
    half = file.with_name(file.name + ".new")
    half.write_bytes(data)
    half.chmod(file.stat().st_mode)
    half.replace(file)


libraries, loader = map(Path, sys.argv[1:])
folder = b"/lib/" + os.fsencode(libraries.name)
trusted = b"\0".join((folder + b"/", b"/usr" + folder + b"/", b"/lib/", b"/usr/lib/"))

seal(loader.resolve(), [b"/etc/ld.so.preload", b"/etc/ld.so.cache"], 2)
data = loader.resolve().read_bytes()
if trusted not in data:
    sys.exit(f"{loader}: the folders that it trusts are not where they were")
# /lib/ has no room for what stands elsewhere; /dev is made anew for each container.
sealed = b"\0".join((replaced(folder + b"/"), replaced(b"/usr" + folder + b"/"), b"/dev/", b"/dev/---/"))
new = loader.resolve().with_suffix(".new")
new.write_bytes(data.replace(trusted, sealed))
new.chmod(0o755)
new.replace(loader.resolve())

seal((libraries / "libc.so.6").resolve(), [b"/etc/nsswitch.conf", b"/usr" + folder + b"/gconv"], 2)
seal((libraries / "libcrypto.so.3").resolve(), [b"/usr/lib/ssl", b"/usr" + folder + b"/"], 2)
