"""What an attempt may change around a verifier: the order of its tests and its clock. Task files stay as they are.

Both are brought into the verifier's container alone, as a copy made for the trial. The order comes by a pytest plugin
that is found like an installed one, through ``PYTHONPATH``: where no Python reads that, nothing happens at all. (Named
by ``-p`` it would break a pytest that cannot find it, as under ``python -I``.) The clock is libfaketime's.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_otval.core import Conclusion
from pytest_otval.sandbox.base import TOOLBOX, Command, Container
from pytest_otval.settings import VerdictSettings
from pytest_otval.trial.clock import clock_library, clock_variables, seconds_of
from pytest_otval.trial.files import log_folder
from pytest_otval.trial.layer import require_end

PLACE = "/.otval-conditions"
"""Where the verifier's container finds them."""

_PLUGIN = Path(__file__).parents[1] / "data" / "test_order" / "otval_test_order.py"
_INSTALLED = {
    "METADATA": "Metadata-Version: 2.1\nName: otval-test-order\nVersion: 1\n",
    "entry_points.txt": "[pytest11]\notval_test_order = otval_test_order\n",
}
"""What makes a module beside it an installed plugin."""

_LIBRARY = "libfaketime.so.1"
_CHECK_SECONDS = 60
_SECONDS = re.compile(r"-?[0-9]{1,18}")
_MOST_TOLD = 1000

# Programs of the image tell the time, since one of ours would not show whether theirs follow the clock. bash is not
# asked: its own $EPOCHSECONDS never does, while what it runs does.
_ASK_CLOCK = """
ask() {
  program=$1; shift
  IFS=:
  for folder in $PATH; do
    if test -f "$folder/$program" -a -x "$folder/$program"; then
      unset IFS
      echo "clock $program $("$folder/$program" "$@")"
      return
    fi
  done
}
ask date +%s
ask python3 -I -S -c 'import time; time.sleep(0.01); print(int(time.time()))'
ask perl -e 'print time'
"""


@dataclass(frozen=True, slots=True)
class Conditions:
    """What differs from an ordinary attempt; by default nothing."""

    order_seed: int | None = None
    """Decides the order of tests; None leaves them as they are."""
    clock_shift: int = 0
    """Seconds by which the verifier's clock is put forward."""

    @classmethod
    def of(cls, settings: VerdictSettings, attempt: int) -> Conditions:
        """Return the conditions of an attempt: its number is the seed, whatever the task, the run and the machine."""
        return cls(attempt if settings.shuffle_tests else None, seconds_of(settings.clock_shift))

    def __bool__(self) -> bool:
        return self != ORDINARY

    def bring(self, folder: Path) -> Path:
        """Make what the container gets as ``folder``. Raises Conclusion ``missing-tool``."""
        folder.mkdir()
        if self.order_seed is not None:
            shutil.copyfile(_PLUGIN, folder / _PLUGIN.name)
            installed = folder / "otval_test_order-1.dist-info"
            installed.mkdir()
            for name, text in _INSTALLED.items():
                (installed / name).write_text(text)
        if self.clock_shift:
            shutil.copyfile(clock_library(), folder / _LIBRARY)
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o755)
        log_folder(folder / "told")
        return folder

    def variables(self, env: Mapping[str, str]) -> dict[str, str]:
        """Return a verifier's variables with what makes programs use what was brought, behind the task's own."""
        found = dict(env)
        if self.order_seed is not None:
            found["PYTHONPATH"] = ":".join(filter(None, (env.get("PYTHONPATH"), PLACE)))
            found["OTVAL_TEST_ORDER"] = str(self.order_seed)
        if self.clock_shift:
            preload = ":".join(filter(None, (f"{PLACE}/{_LIBRARY}", env.get("LD_PRELOAD"))))
            found |= {"LD_PRELOAD": preload, **clock_variables(self.clock_shift)}
        return found

    def require_clock(self, container: Container, test: Command, log: Path) -> None:
        """Raise Conclusion ``clock-not-shifted`` unless every program that we ask tells the shifted time.

        ``test`` is the command that is about to run, for its user, workdir and variables.
        """
        if not self.clock_shift:
            return
        argv = [f"{TOOLBOX}/sh", "-c", _ASK_CLOCK]
        earliest = int(time.time()) + self.clock_shift
        result = container.run(replace(test, argv=argv, log=log, seconds=_CHECK_SECONDS, phase=None))
        latest = time.time() + self.clock_shift
        require_end(result, "asking the clock", "clock-not-shifted")
        told = [line.split()[1:] for line in _first_bytes(log).splitlines() if line.startswith("clock ")]
        if not told:
            raise Conclusion("clock-not-shifted", "the image has no date, python3 or perl to see the shifted clock by")
        for program, *words in told:
            seen = int(words[0]) if len(words) == 1 and _SECONDS.fullmatch(words[0]) else None
            if seen is None or not earliest <= seen <= latest:
                what = "no time" if seen is None else "the real time"
                raise Conclusion("clock-not-shifted", f"{program} of the image tells {what} under a shifted clock")

    def test_order(self, folder: Path) -> dict[str, int] | None:
        """Return the seed and the number of tests that were put in order; None where order is not ours.

        ``folder`` is what was brought, readable by now; it may hold anything, and only names are looked at.
        """
        if self.order_seed is None:
            return None
        try:
            names = [path.name for path, _ in zip((folder / "told").iterdir(), range(_MOST_TOLD), strict=False)]
        except OSError:
            names = []
        counts = [int(name) for name in names if name.isascii() and name.isdigit() and len(name) < 10]
        return {"seed": self.order_seed, "tests": max(counts, default=0)}


ORDINARY = Conditions()


def _first_bytes(log: Path) -> str:
    with log.open("rb") as file:
        return file.read(64 * 1024).decode(errors="replace")
