"""Arrays of jobs: the script, and its way to Slurm through submitit.

An element of an array is a command line. Which shard it is stands in ``arrays/<N>.json`` of the run folder, written
before sbatch is called: a process that dies on the way leaves an array that runs, or one that never was, and Slurm can
tell which by the array's name.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_otval.cluster import bootstrap
from pytest_otval.cluster.packing import base_interpreter
from pytest_otval.cluster.request import Request
from pytest_otval.cluster.states import job_name
from pytest_otval.core import OtvalUsageError
from pytest_otval.images.locks import write_whole
from pytest_otval.llm.secret import Secret

if TYPE_CHECKING:
    import submitit

ARRAYS = "arrays"
LOGS = "logs"
BOOTSTRAP = "bootstrap.py"
_KEPT = ("SLURM_CONF", "SBATCH_ACCOUNT", "SBATCH_QOS", "SBATCH_RESERVATION")
"""Variables of Slurm that are the user's or the site's choice, not traces of a job in which this runs."""


@dataclass(frozen=True, slots=True)
class Element:
    """One job of an array."""

    shard: int
    items: tuple[int, ...] | None = None
    """Numbers of the items it is for; None: all of the shard. What has an answer by then is left out."""
    alone: bool = False
    """Whether it is there to find out if its one item kills jobs."""


@dataclass(frozen=True, slots=True)
class Array:
    """One submission."""

    number: int
    elements: tuple[Element, ...]
    time: float
    """When it was about to be submitted, in seconds since 1970."""
    job: str = ""
    """Slurm's id; empty until it is known."""
    exclude: tuple[str, ...] = ()
    """Nodes that it must not run on."""
    resumes: bool = False
    """Whether a run that was over goes on with it: what ended as an error before is no answer any more."""


def arrays_of(run: Path) -> list[Array]:
    """Return the arrays of a run, in the order they were submitted. Raises OtvalUsageError for what is none of ours."""
    return [_read(path) for path in sorted((run / ARRAYS).glob("*.json"), key=lambda path: int(path.stem))]


def read_array(run: Path, number: int) -> Array:
    """Return one array of a run. Raises OtvalUsageError."""
    return _read(run / ARRAYS / f"{number}.json")


def _read(path: Path) -> Array:
    try:
        values = json.loads(path.read_bytes())
        elements = tuple(
            Element(one["shard"], None if one["items"] is None else tuple(one["items"]), one["alone"])
            for one in values["elements"]
        )
        exclude, resumes = tuple(values["exclude"]), bool(values.get("resumes"))
        return Array(int(path.stem), elements, values["time"], values["job"], exclude, resumes)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise OtvalUsageError(f"{path} cannot be read: {error}") from None


def resumed_at(arrays: Sequence[Array]) -> int:
    """Return the number of the array with which a run last went on; 0 if it never did."""
    return max((array.number for array in arrays if array.resumes), default=0)


def _write(run: Path, array: Array) -> None:
    (run / ARRAYS).mkdir(exist_ok=True)
    write_whole(run / ARRAYS / f"{array.number}.json", (json.dumps(asdict(array)) + "\n").encode())


def submit(
    run: Path, request: Request, elements: Sequence[Element], exclude: Sequence[str] = (), resumes: bool = False
) -> Array:
    """Submit an array. Raises OtvalUsageError, with Slurm's own words, where it is refused; OSError.

    It is also refused where a key that jobs need is not in the environment of this process.
    """
    from submitit.core.utils import FailedJobError, FailedSubmissionError

    for variable in request.models.key_variables:
        Secret.from_environment(variable)
    if not (run / BOOTSTRAP).exists():
        shutil.copyfile(bootstrap.__file__, run / BOOTSTRAP)
    number = len(list((run / ARRAYS).glob("*.json")))
    array = Array(number, tuple(elements), time.time(), "", tuple(exclude), resumes)
    (run / LOGS).mkdir(exist_ok=True)
    _write(run, array)
    executor = _executor(run, request, array)
    try:
        with _clean_environment():
            job = executor._submit_command(_command(run, number))
    except (FailedJobError, FailedSubmissionError) as error:
        # Its number is not used again: sbatch may have given up on what the controller took.
        _write(run, replace(array, elements=(), resumes=False))
        raise OtvalUsageError(f"sbatch refused the jobs: {_said(str(error))}") from None
    array = replace(array, job=str(job.job_id))
    _write(run, array)
    return array


def script(run: Path, request: Request, count: int) -> str:
    """Return the text that sbatch would get for an array of ``count`` shards."""
    array = Array(0, tuple(map(Element, range(count))), 0.0)
    return str(_executor(run, request, array)._make_submission_file_text(_command(run, 0), ""))


def _command(run: Path, number: int) -> str:
    return shlex.join(["exec", str(base_interpreter()), str(run / BOOTSTRAP), str(run), str(number)])


def _executor(run: Path, request: Request, array: Array) -> submitit.SlurmExecutor:
    from submitit import SlurmExecutor

    class Executor(SlurmExecutor):
        """Scripts are made where there is no Slurm, too."""

        @classmethod
        def affinity(cls) -> int:
            return 1

    optional: dict[str, Any] = {
        "account": request.account,
        "qos": request.qos,
        "gres": request.gres,
        "mem": f"{request.memory_mb}M" if request.memory_mb else "",
        "exclude": ",".join(array.exclude),
    }
    executor = Executor(run / LOGS)
    executor.update_parameters(
        job_name=job_name(run.name, array.number),
        partition=request.partition,
        time=request.seconds // 60,
        cpus_per_task=request.cpus,
        setup=_setup(request),
        array_parallelism=len(array.elements),
        wckey=None,
        stderr_to_stdout=True,
        use_srun=False,
        additional_parameters={
            "signal": f"B:USR2@{request.signal_seconds}",
            # Besides these, jobs have the environment of a login, as with NONE. Values go to Slurm's controller alone.
            "export": ",".join(request.models.key_variables) or "NONE",
            "requeue": True,
            "chdir": str(run),
            **request.options,
        },
        **{name: value for name, value in optional.items() if value},
    )
    # Of one element, too: job ids have the same form then.
    executor.parameters["map_count"] = len(array.elements)
    return executor


def _setup(request: Request) -> list[str]:
    python = shlex.quote(str(base_interpreter()))
    missing = f'echo "otval: $(hostname): there is no Python at {base_interpreter()}" >&2'
    return [*request.setup, f"[ -x {python} ] || {{ {missing}; exit {bootstrap.FAILED}; }}"]


@contextmanager
def _clean_environment() -> Iterator[None]:
    """Hide from sbatch the job in which this process may run."""
    from submitit.helpers import clean_env

    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    with clean_env():
        os.environ.update(kept)
        yield


def _said(text: str) -> str:
    """Return what sbatch said, out of what submitit says of it."""
    lines = [line.strip() for line in text.splitlines() if "error:" in line]
    return lines[-1].partition("error:")[2].strip() if lines else (text.strip().splitlines() or ["no reason given"])[-1]
