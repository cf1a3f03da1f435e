"""Where a dataset of a contract lies here: it names datasets by their names, and a contract may be read anywhere."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pytest_otval.contract.model import DatasetPin
from pytest_otval.core import OtvalUsageError
from pytest_otval.task.index import is_prepared


def dataset_folder_of(name: str, pin: DatasetPin, places: Iterable[Path]) -> Path:
    """Return the folder that has the tasks of a contract's dataset.

    ``places`` are the folders below which ``datasets/NAME`` is looked for. Raises OtvalUsageError where there is none.
    """
    folders = [place / "datasets" / name for place in places]
    if pin.folder:
        folders.append(Path(pin.folder))
    for folder in folders:
        if is_prepared(folder) or (pin.own and not pin.tasks and folder.is_dir()):
            return folder
    shown = ", ".join(map(str, folders))
    raise OtvalUsageError(f"dataset {name} of the contract is not here, or not prepared: looked for {shown}")
