"""The words that our first process in a container, a static busybox shell, is told over its control socket.

The shell reads its script from the socket (``sh -s``) and runs each command in the background, so that it goes on
reading: when the other end closes, because we closed it or were killed, it ends, and with it the container. Nothing
that a command was given shows in a process list, and the socket cannot be opened through /proc.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

from pytest_otval.sandbox.base import TOOLBOX, Command

_PREPARE = """
echo 0 >/proc/sys/net/ipv4/ip_unprivileged_port_start
echo 0 65536 >/proc/sys/net/ipv4/ping_group_range
mount -t tmpfs -o ro,size=4k none /sys/fs/cgroup
read inside outside count </proc/self/uid_map
if [ "$outside" = 0 ]; then
  for path in /proc/sys /proc/irq /proc/bus /proc/fs; do
    mount -o bind $path $path && mount -o remount,bind,ro $path
  done
  test -e /proc/sysrq-trigger && mount -o bind /dev/null /proc/sysrq-trigger
  awk '$2 ~ "^/sys" && $2 !~ "^/sys/fs/cgroup/" { print $2 }' /proc/mounts |
    while read path; do mount -o remount,bind,ro $path; done
fi
"""
# Delegated control groups belong to the user: nothing of them is shown. The rest only a runner that is root could
# write.

OWN_LAYERS = f"{TOOLBOX}/own-layers"
"""Where the host's folder for writable layers is bound until they are mounted; a folder with ``upper`` and ``work`` for
each, by number."""

_LAYER = """
mount -t overlay -o lowerdir=$1,upperdir=$2/upper,workdir=$2/work,userxattr own-layer $1 ||
{ cp -a $1/. $2/upper/ && mount -o bind $2/upper $1; }
# At the very path: a link that somebody left on the way to it leads elsewhere, and may be turned.
if ! awk -v path=$1 '$2 == path && $4 ~ /^rw/ { found = 1 } END { exit !found }' /proc/mounts; then
  echo "no writable layer can be mounted at $1" >&7
  exit 1
fi
"""
"""Puts a writable layer over a read-only mount. Kernels before 5.11 give overlays to the host's root alone: a copy
serves as well, only slower. In a namespace above the task's, which can undo neither."""

_NEST = """
own=$(readlink /proc/self/ns/user)
uids=$(awk '{print $1, $1, $3}' /proc/self/uid_map)
gids=$(awk '{print $1, $1, $3}' /proc/self/gid_map)
unshare -U -m $B sleep 60 &
while [ "$(readlink /proc/$!/ns/user)" = "$own" ]; do usleep 500; done
echo "$gids" >/proc/$!/gid_map && echo "$uids" >/proc/$!/uid_map || exit 1
exec $B nsenter -t $! -U -m --preserve-credentials $B sh -c "kill $!; exec $B sh -s" 2>&7 7>&-
"""
# The namespace is made by a sleeper and entered once its uids are mapped: under no_new_privs, which the runtime sets,
# a process that execs before that loses its capabilities for good.

_FAKEROOT_NEEDS = ("LD_PRELOAD", "FAKEROOTKEY", "FAKED_MODE", "FAKEROOTDONTTRYCHOWN")


def first_argv(keep_fakeroot: bool, own_layers: Sequence[str] = ()) -> tuple[str, ...]:
    """Return what the container runs first; ``keep_fakeroot`` lets the ``fakeroot`` program's variables through.

    Two shells: the outer makes the kernel's switches read-only, then starts the inner in a user and mount namespace
    below with the same uids. What was mounted before is locked there: the task's root can neither unmount nor remount
    it, and it has no power over the network namespace. This matters most for a runner that is root, whose container
    root is the kernel's own root to /proc/sys. (Low ports and ping are opened to all users in exchange.)

    ``own_layers`` are the mounts that get a writable layer, in the order of the folders at ``OWN_LAYERS``.
    """
    keep = " ".join(f'${{{name}:+{name}="${name}"}}' for name in _FAKEROOT_NEEDS) if keep_fakeroot else ""
    # Noise of the preparation is no word of the task: it goes nowhere, the inner shell gets the real stderr as 7.
    clean = f"exec 7>&2 2>/dev/null; exec {TOOLBOX}/busybox env -i {keep} {TOOLBOX}/busybox sh -c"
    script = f"B={TOOLBOX}/busybox{_PREPARE}{_layers(own_layers)}{_NEST}"
    return (f"{TOOLBOX}/busybox", "sh", "-c", f"{clean} {shlex.quote(script)}")


def _layers(targets: Sequence[str]) -> str:
    if not targets:
        return ""
    calls = [f"layer {shlex.quote(target)} {OWN_LAYERS}/{number}\n" for number, target in enumerate(targets)]
    return f"layer() {{{_LAYER}}}\n{''.join(calls)}umount {OWN_LAYERS}\n"


SHELL = [f"{TOOLBOX}/busybox", "sh", "-s"]
"""Command line of the inner shell and of those it forks."""

HELLO = "exec 9>&0; echo ready >&9\n"
"""First words: the container answers ``ready``."""

_EXPORTABLE = re.compile(r"(?!(?:IFS|OLDPWD|PWD|SHLVL)\Z)[A-Za-z_][A-Za-z0-9_]*")
"""Names that a shell takes from us and hands on as they are."""


def command_script(command: Command, number: int) -> str:
    """Return the script that runs ``command`` in the background.

    It answers ``started NUMBER PID`` and, at the command's end, ``exit NUMBER STATUS``; before both, where the user or
    the workdir does not exist, ``refused NUMBER`` with the reason in the log.
    """
    merge = "" if command.stdout is not None else "2>&1"
    workdir = shlex.quote(command.workdir)
    return f"""(
(
exec </dev/null {merge}
refuse() {{ echo "$1"; echo "refused {number}" >&9; exit 1; }}
mkdir -p -- {workdir} 2>/dev/null
cd -- {workdir} 2>/dev/null || refuse "the workdir "{workdir}" cannot be entered"
{_user_lookup(command.user)}
{_exports(command.env)}
exec 9>&-
{_exec(command)}
)
echo "exit {number} $?" >&9
) &
echo "started {number} $!" >&9
"""


def _exec(command: Command) -> str:
    """Become the user, then the program. The task's variables are set by now: nothing here reads one."""
    program = _unnameable(command.env) + shlex.join(command.argv)
    if _is_root(command.user):
        return f"exec {program}"
    as_ids = f'exec {TOOLBOX}/busybox nsenter -S "$1" -G "$2" {program}'
    if ":" in str(command.user):
        return as_ids
    # su gives a known user all its groups, as Docker does.
    as_name = f'exec {TOOLBOX}/busybox su -m -s {TOOLBOX}/sh -- "$3" -c \'exec "$@"\' sh {program}'
    return f'if [ -n "$3" ]; then\n{as_name}\nfi\n{as_ids}'


def _exports(env: Mapping[str, str]) -> str:
    lines = [f"export {key}={shlex.quote(value)}" for key, value in env.items() if _EXPORTABLE.fullmatch(key)]
    if "HOME" not in env:
        lines.insert(0, 'export HOME="${4:-/root}"')
    return "\n".join(["unset OLDPWD", *lines])


def _unnameable(env: Mapping[str, str]) -> str:
    """Variables that no shell hands on, as ``my-var`` for its name, go through env(1)."""
    odd = [shlex.quote(f"{key}={value}") for key, value in env.items() if not _EXPORTABLE.fullmatch(key)]
    return f"{TOOLBOX}/busybox env -- {' '.join(odd)} " if odd else ""


def _user_lookup(user: str | int | None) -> str:
    """Find the declared user in the container's own passwd, as Docker does: $1 to $4 are uid, gid, name and home."""
    if _is_root(user):
        return ""
    name, _, group = str(user).partition(":")
    return f"""
line=$(awk -F: -v u={shlex.quote(name)} '$1 == u || $3 == u {{ print; exit }}' /etc/passwd)
group=$(awk -F: -v g={shlex.quote(group)} '$1 == g || $3 == g {{ print $3; exit }}' /etc/group)
if [ -n "$line" ]; then
  field() {{ echo "$line" | cut -d: -f$1; }}
  set -- "$(field 3)" "$(field 4)" "$(field 1)" "$(field 6)"
else
  case {shlex.quote(name)} in
    ''|*[!0-9]*) refuse "there is no user "{shlex.quote(name)}" in the image" ;;
  esac
  set -- {shlex.quote(name)} 0 '' /
fi
set -- "$1" "${{group:-{group if group.isascii() and group.isdecimal() else "$2"}}}" "$3" "$4"
"""


def _is_root(user: str | int | None) -> bool:
    return user is None or str(user) in ("", "0", "root", "0:0", "root:root")
