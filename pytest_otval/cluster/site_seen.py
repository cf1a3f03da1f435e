"""What a login node says of its site: partitions, limits, modules, quotas. Each answer is about one key of the profile.

``ask`` runs a command and gives back what it printed, None where it is missing or failed; tests have recorded answers.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from pytest_otval.cluster.probes import Probe
from pytest_otval.profile import ModulesSection, PartitionSection, Profile, SlurmSection, StorageSection
from pytest_otval.profile.facts import Key

Ask = Callable[[Sequence[str]], str | None]
Value = bool | int | float | str | list[str]

_SECONDS = 60.0
_SINFO = ("sinfo", "-h", "--exact", "-o", "%R|%D|%c|%m|%G|%l")
_GPUS = re.compile(r"gpu(?::(?P<kind>[A-Za-z]\w*))?:(?P<count>\d+)")
_LIMIT = re.compile(r"(?:(?P<days>\d+)-)?(?:(?P<hours>\d+):)?(?P<minutes>\d+):(?P<seconds>\d+)")


@dataclass(frozen=True, slots=True)
class Seen:
    """What one key of the profile should say."""

    key: Key
    value: Value
    source: str
    """The command that said so."""


def ask_here(argv: Sequence[str]) -> str | None:
    """Run a command on this machine."""
    try:
        answer = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout


def look(profile: Profile, ask: Ask = ask_here) -> Iterator[Seen | Probe]:
    """Yield what this login node says; a probe where it says nothing that a key could hold."""
    if profile.slurm:
        yield from _slurm(profile.slurm, ask)
    if profile.modules.load:
        yield from _modules(profile.modules, ask)
    for name, place in profile.storage.items():
        yield from _storage(name, place, ask)
    yield from _version(profile, "apptainer", ask(("apptainer", "version")))


def _miss(name: str, detail: str, fix: str) -> Probe:
    return Probe("site", name, False, detail, fix)


# --- Slurm ------------------------------------------------------------------------------------------------------------


def _slurm(slurm: SlurmSection, ask: Ask) -> Iterator[Seen | Probe]:
    nodes, config = ask(_SINFO), ask(("scontrol", "show", "config"))
    if nodes is None or config is None:
        yield _miss("slurm", "sinfo or scontrol does not answer", "run doctor on a login node of the cluster")
        return
    settings = dict(re.findall(r"^(\w+)\s*= *(.*?) *$", config, re.MULTILINE))
    if settings.get("MaxArraySize", "").isdigit():
        yield Seen(("slurm", "max_array"), int(settings["MaxArraySize"]) - 1, "scontrol show config")
    kinds = _kinds(nodes)
    for name, partition in slurm.partitions.items():
        if name not in kinds:
            known = ", ".join(sorted(kinds))
            yield _miss(f"partition {name}", f"there is none; the site has {known}", "take it out of the profile")
            continue
        yield from _partition(name, partition, kinds[name])
        shown = ask(("scontrol", "show", "partition", "-o", name))
        words = dict(re.findall(r"(\w+)=(\S*)", shown or ""))
        if "PreemptMode" in words and settings.get("PreemptType", "preempt/none") != "preempt/none":
            ends = words["PreemptMode"].split(",")[-1] in ("REQUEUE", "CANCEL")
            yield Seen(("slurm", "partitions", name, "preemptible"), ends, "scontrol show partition")
    others = sorted(kinds.keys() - slurm.partitions.keys())
    if others:
        yield Probe("site", "other partitions", True, f"not in the profile: {', '.join(others)}")


@dataclass(frozen=True, slots=True)
class _Kind:
    """Nodes of one kind in a partition."""

    count: int
    cores: int
    memory_mb: int
    gres: str
    limit: str


def _kinds(sinfo: str) -> Mapping[str, _Kind]:
    """Return for each partition the kind of which it has most nodes."""
    most: dict[str, _Kind] = {}
    for line in sinfo.splitlines():
        fields = line.split("|")
        if len(fields) != 6:
            continue
        name, count, cores, memory, gres, limit = fields
        kind = _Kind(int(count), int(cores.rstrip("+")), int(memory.rstrip("+")), gres, limit)
        if name not in most or kind.count > most[name].count:
            most[name] = kind
    return most


def _partition(name: str, partition: PartitionSection, kind: _Kind) -> Iterator[Seen]:
    values: dict[str, Value] = {"cores": kind.cores, "memory_mb": kind.memory_mb}
    gpus = _GPUS.search(kind.gres)
    values["gpus"] = int(gpus["count"]) if gpus else 0
    gres = f"gpu:{gpus['kind']}" if gpus and gpus["kind"] else "gpu" if gpus else ""
    # Without a kind, any of those that the partition has is asked for.
    if not (gres and partition.gres == "gpu"):
        values["gres"] = gres
    seconds = _limit_seconds(kind.limit)
    if seconds is not None and seconds != partition.max_seconds:
        values["max_time"] = _limit_text(seconds)
    for key, value in values.items():
        yield Seen(("slurm", "partitions", name, key), value, "sinfo")


def _limit_seconds(text: str) -> int | None:
    """Return the seconds of a limit as sinfo writes it, from ``30:00`` to ``7-00:00:00``; None for ``infinite``."""
    match = _LIMIT.fullmatch(text)
    if match is None:
        return None
    days, hours, minutes, seconds = (int(match[part] or 0) for part in ("days", "hours", "minutes", "seconds"))
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def _limit_text(seconds: int) -> str:
    days, rest = divmod(seconds, 86400)
    time = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    return f"{days}-{time}" if days else time


# --- modules and versions ---------------------------------------------------------------------------------------------


def _modules(modules: ModulesSection, ask: Ask) -> Iterator[Seen | Probe]:
    # Sites export the function to bash; another shell would not know it.
    files = " ".join(map(quote, modules.init))
    script = f'command -v module >/dev/null || for f in {files}; do [ ! -r "$f" ] || . "$f"; done; module -t avail 2>&1'
    said = ask(("bash", "-c", script))
    if said is None:
        yield _miss("modules", "there is no command module", "name the files that define it in [modules] init")
        return
    there = [line.strip() for line in said.splitlines() if line.strip() and not line.rstrip().endswith(":")]
    found = [_module(name, there) for name in modules.load]
    for name, instead in zip(modules.load, found, strict=True):
        if instead is None:
            yield _miss(f"module {name}", "there is none of this name", "choose another of `module avail`")
    yield Seen(
        ("modules", "load"),
        [instead or name for name, instead in zip(modules.load, found, strict=True)],
        "module avail",
    )


def _module(name: str, there: Sequence[str]) -> str | None:
    """Return the name that loads a module: itself, or another version or spelling, the default or last one first."""
    plain = [line.removesuffix("(default)") for line in there]
    if any(line == name or line.startswith(f"{name}/") for line in plain):
        return name
    base = name.partition("/")[0].lower()
    same = [line for line in there if line.partition("/")[0].removesuffix("(default)").lower() == base]
    default = [line for line in same if line.endswith("(default)")]
    return (default or same)[-1].removesuffix("(default)") if same else None


def _version(profile: Profile, program: str, said: str | None) -> Iterator[Seen | Probe]:
    if said is None:
        return
    version = said.strip()
    if program in profile.versions:
        yield Seen(("versions", program), version, f"{program} version")
    else:
        yield Probe("site", program, True, version)


# --- storage ----------------------------------------------------------------------------------------------------------


def _storage(name: str, place: StorageSection, ask: Ask) -> Iterator[Seen | Probe]:
    path = os.environ.get(place.variable, "") if place.variable else place.path or ""
    if not path or not Path(path).is_dir():
        what = f"${place.variable} is not set here" if not path else f"{path} is not here"
        yield Probe("site", f"storage {name}", True, what)
        return
    said = ask(("df", "--output=source,fstype", "--", path))
    source, _, kind = (said or "").strip().rpartition("\n")[2].rpartition(" ")
    if kind == "lustre":
        command: tuple[str, ...] = ("lfs", "quota", "-q", "-u", str(os.getuid()), path)
        row = _quota_row(ask(command) or "", path)
    else:
        command = ("quota", "-w", "-p")
        row = _quota_row(ask(command) or "", source.strip())
    if row is None:
        yield Probe("site", f"storage {name}", True, f"{path}; no quota is told ({' '.join(command[:2])})")
        return
    _, kib_soft, kib_hard, _, _, files_soft, files_hard, _ = row
    gigabytes = {"gb_soft": kib_soft, "gb_hard": kib_hard}
    limits: dict[str, float] = {key: round(kib * 1024 / 1e9, 3) for key, kib in gigabytes.items()}
    for key, limit in {**limits, "files_soft": files_soft, "files_hard": files_hard}.items():
        if limit:
            yield Seen(("storage", name, key), limit, " ".join(command[:2]))


def _quota_row(text: str, filesystem: str) -> tuple[int, ...] | None:
    """Return used, soft, hard, grace, for KiB and for files, of a file system in a table of quota(1) or lfs(1)."""
    words = text.split()
    for start in (number for number, word in enumerate(words) if word == filesystem):
        row = [re.sub(r"[*\[\]]", "", word) for word in words[start + 1 : start + 9]]
        numbers = [word if word.isdigit() else "0" for word in row]
        if len(row) == 8 and row[0].isdigit() and row[4].isdigit():
            return tuple(map(int, numbers))
    return None
