"""Killing a piece of code at each of its steps on files, to see what it leaves."""

from __future__ import annotations

import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

STEPS = frozenset({"open", "os.rename", "os.chmod", "os.remove", "os.mkdir", "os.truncate"})
"""What Python tells its audit hooks of before it happens."""


def killed_at_each_step(action: Callable[[], object], below: Path) -> Iterator[int]:
    """Run ``action`` in children that die by SIGKILL, the first at its first step on files, the next at the second, ...

    Steps on files below ``below`` count. Yields the step after each death; ends after the child that came to its end.
    """
    step = 0
    while _dies(action, below, step):
        yield step
        step += 1
    assert step > 0, f"the action takes no step on files below {below}"


def _dies(action: Callable[[], object], below: Path, step: int) -> bool:
    with warnings.catch_warnings():
        # Threads of the test run are no matter: the child runs nothing but the action.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        _run(action, below, step)
    _, status = os.waitpid(child, 0)
    assert status in (0, signal.SIGKILL), f"the action failed at step {step}"
    return status == signal.SIGKILL


def _run(action: Callable[[], object], below: Path, step: int) -> None:
    left = step

    def count(event: str, arguments: tuple) -> None:
        nonlocal left
        if event in STEPS and any(str(below) in str(one) for one in arguments):
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    try:
        sys.addaudithook(count)
        action()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
