"""Several attacks at once: the script that runs them, which of them ran, and which of them paid."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from pytest_otval.attacks.battery import NEEDS, Attack, payloads
from pytest_otval.sandbox.base import TOOLBOX
from pytest_otval.trial.agents.attack import PLACE, RUN, Scripts

SHELL = f"{TOOLBOX}/sh"
MARKS = "otval-attacks.txt"
"""In /logs/agent: the ids of the attacks that ran to the end of their scripts, one a line."""

T = TypeVar("T")

_BEGIN = """\
PAYLOADS={place}/payloads
PATHS={paths}
MODULES=
ACTIVATE=
STDLIB= SITE= USER_SITE= PYTEST= RUNNER=
export PAYLOADS PATHS MODULES ACTIVATE STDLIB SITE USER_SITE PYTEST RUNNER
"""

_FIND_MODULES = """\
for name in {modules}; do
  case $name in
    /*) file=$name ;;
    *) file=$PWD/$name
       test -f "$file" || file=$(find "$PWD" -xdev -type f -path "*/$name" 2>/dev/null | sort | head -n 1) ;;
  esac
  case $file in *[[:space:]]*) continue ;; esac
  if test -f "$file"; then MODULES="$MODULES$file "; fi
done
"""

_FIND_ACTIVATE = """\
ACTIVATE=$(cd ~ && for top in / /opt/ /opt/*/envs/ /root/ /home/*/ ~/ ~/*/envs/ "$OLDPWD"/; do
  ls -d "$top"*/bin/activate "$top".*/bin/activate
done 2>/dev/null | grep -v '[[:space:]]' | sort -u)
"""

# Python takes long to start, and pytest to be imported: all that attacks ask of them is asked once, with few imports.
_ASK_PYTHON = """\
eval "$(python3 - <<'END' 2>/dev/null
import os, site
from importlib.machinery import PathFinder
found = {"STDLIB": os.path.dirname(os.__file__), "USER_SITE": site.getusersitepackages()}
found["SITE"] = site.getsitepackages()[0]
for name, module, file in (("PYTEST", "pytest", "__init__.py"), ("RUNNER", "_pytest", "runner.py")):
    spec = PathFinder.find_spec(module)
    if spec is not None and spec.origin:
        found[name] = os.path.join(os.path.dirname(spec.origin), file)
print("; ".join("%s='%s'" % (name, value.replace("'", "'\\\\''")) for name, value in found.items()))
END
)"
"""

# Each need is looked at once, before any attack changes what there is.
_HAS = """\
HAVE=" "
has() { for need; do case $HAVE in *" $need "*) ;; *) return 1 ;; esac; done; }
"""

_ONE = """\
if has {needs}; then
  echo {id}
  if {shell} -e {place}/{id}.sh </dev/null; then echo {id} >>/logs/agent/{marks}; fi
fi
"""


def agent_of(name: str, attacks: Iterable[Attack], modules: Sequence[str], paths: Sequence[str]) -> Scripts:
    """Return the agent that runs attacks one after the other, each if what it needs is there."""
    chosen = list(attacks)
    needed = {need for attack in chosen for need in attack.needs}
    script = _BEGIN.format(place=PLACE, paths=shlex.quote(" ".join(paths)))
    if "modules" in needed:
        script += _FIND_MODULES.format(modules=shlex.join(modules) or "''")
    if "activate" in needed:
        script += _FIND_ACTIVATE
    if needed & {"python3", "pytest"}:
        script += _ASK_PYTHON
    script += _HAS
    for need in sorted(needed):
        script += f'if ({NEEDS[need]}) >/dev/null 2>&1; then HAVE="${{HAVE}}{need} "; fi\n'
    for attack in chosen:
        script += _ONE.format(needs=" ".join(attack.needs), id=attack.id, shell=SHELL, place=PLACE, marks=MARKS)
    files = {RUN: script, **{f"{attack.id}.sh": attack.script for attack in chosen}}
    return Scripts(name, {**files, **{f"payloads/{name}": text for name, text in payloads().items()}})


def applied(evidence: Iterable[Path]) -> set[str]:
    """Return the ids of the attacks that ran, from the folders of evidence of a trial's steps."""
    found: set[str] = set()
    for folder in evidence:
        marks = folder / "agent" / MARKS
        if marks.is_file():
            found.update(marks.read_text(errors="replace").split())
    return found


def unions(attacks: Iterable[Attack]) -> Mapping[str, list[Attack]]:
    """Return what is tried together, by a name: attacks of one union, and each of the others alone by its id."""
    found: dict[str, list[Attack]] = {}
    for attack in attacks:
        found.setdefault(f"union-{attack.union}" if attack.union else attack.id, []).append(attack)
    return found


def bisect(group: Sequence[T], hits: Callable[[Sequence[T]], bool]) -> list[list[T]]:
    """Return the smallest parts of a group that hit; the group itself is known to.

    Halves are asked, as far down as they hit. A part of which neither half hits is returned as it is.
    """
    if len(group) == 1:
        return [list(group)]
    middle = len(group) // 2
    found = [part for half in (group[:middle], group[middle:]) if hits(half) for part in bisect(half, hits)]
    return found or [list(group)]
