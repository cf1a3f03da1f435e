"""Which instructions can be built, and which are named and refused."""

from __future__ import annotations

from pytest_otval.core import Conclusion
from pytest_otval.task.dockerfile import Instruction

_FLAGS = {
    "COPY": ("--chown", "--chmod", "--from"),
    "ADD": ("--chown", "--chmod", "--checksum"),
    "FROM": ("--platform",),
}


def refuse_unsupported(instruction: Instruction, file: str) -> None:
    """Raise Conclusion ``unsupported-instruction`` for an instruction that cannot be built here."""
    what = _unsupported(instruction)
    if what:
        raise unsupported(instruction, file, what)


def unsupported(instruction: Instruction, file: str, what: str) -> Conclusion:
    """Return what is said of an instruction that Docker builds and we do not."""
    return Conclusion("unsupported-instruction", f"{file}:{instruction.line}: {what} is not supported yet")


def _unsupported(instruction: Instruction) -> str | None:
    kind = instruction.kind
    for flag in instruction.flags if kind != "HEALTHCHECK" else ():
        name = flag.partition("=")[0]
        if name not in _FLAGS.get(kind, ()):
            return f"{kind} {name}"
    if kind == "FROM" and instruction.args[0] == "scratch":
        return "FROM scratch"
    if kind == "ONBUILD":
        return f"ONBUILD {instruction.inner}"
    return None
