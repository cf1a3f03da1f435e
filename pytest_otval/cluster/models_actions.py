"""What ``python -m pytest_otval models`` does."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from threading import Event

from pytest_otval.core import OtvalUsageError, printable
from pytest_otval.hub import Hub
from pytest_otval.images.staging import is_remote
from pytest_otval.llm.secret import Secret
from pytest_otval.llm.serving import Server, ServerError, command_of, free_port
from pytest_otval.llm.weights import Weights, all_weights, bring, faults, find_weights, staged
from pytest_otval.profile import ModelSection, Profile, load_profile
from pytest_otval.sandbox.admission import Admission, Need
from pytest_otval.sandbox.budget import node_budget
from pytest_otval.sandbox.gpus import node_gpus
from pytest_otval.workspace import Workspace, scratch

FOLDER = "models"
"""Of copies and logs, in the node-local scratch of a user."""


def named(profile: Profile, word: str) -> tuple[str, ModelSection]:
    """Return the name and section of a model; its repository is known then. Raises OtvalUsageError."""
    name, _, revision = (word, "", "") if word in profile.models else word.partition("@")
    section = profile.models.get(name, ModelSection())
    values = {"repository": section.repository or name, "revision": revision or section.revision}
    try:
        return name, ModelSection(**{**section.model_dump(), **values})
    except ValueError:
        words = "is no model of the profile with a repository, and no ORGANISATION/NAME[@COMMIT] of the hub (40 digits)"
        raise OtvalUsageError(f"{printable(word)} {words}") from None


def download(arguments: argparse.Namespace) -> int:
    """Bring weights, and say which revision they are."""
    _, section = named(load_profile(arguments.cluster), arguments.model)
    hub = Hub(section.repository or "", section.revision, kind="model")
    for line in bring(hub, Workspace.from_environment().models):
        print(line, flush=True)
    print(f'{hub.repository} is here: revision = "{hub.revision}"')
    return 0


def list_models(arguments: argparse.Namespace) -> int:
    """List what is here."""
    found = all_weights(Workspace.from_environment().models)
    if arguments.json:
        print(json.dumps([asdict(one) for one in found]))
        return 0
    for one in found:
        print(one)
    return 0


def verify(arguments: argparse.Namespace) -> int:
    """Read what is here; return 1 where something is not as it came, or not whole."""
    models, status = Workspace.from_environment().models, 0
    found = [one for one in all_weights(models) if not arguments.models or one.repository in arguments.models]
    missing = set(arguments.models) - {one.repository for one in found}
    if missing:
        raise OtvalUsageError(f"{models} has no {printable(', '.join(sorted(missing)))}")
    for one in found:
        wrong = list(faults(models, one))
        status |= bool(wrong) or not one.whole
        print(f"{one}{'' if wrong else '  as it came'}", flush=True)
        for fault in wrong:
            print(f"error: {one.name}: {fault}", file=sys.stderr)
    return status


def serve(arguments: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT: 0; 1 where the server did not last so long."""
    profile = load_profile(arguments.cluster)
    name, section = named(profile, arguments.model)
    gpus = section.serve.gpus if arguments.gpus is None else arguments.gpus
    if gpus > len(node_gpus()):
        raise OtvalUsageError(f"{gpus} GPUs are asked for, and this node has {len(node_gpus())}: see --gpus")
    models, node = Workspace.from_environment().models, scratch(profile.scratch.path)
    weights = find_weights(models, section.repository or "", section.revision)
    need = Need(section.serve.cpus, section.serve.memory_mb, gpus, lasting=True)
    with Admission(node, node_budget(profile.budget)).grant(need) as grant:
        folder = _folder(profile, models, node, weights)
        devices = [gpu.uuid or str(gpu.minor) for gpu in grant.gpus]
        return _served(arguments, name, section, folder, devices, node / FOLDER)


def _folder(profile: Profile, models: Path, node: Path, weights: Weights) -> Path:
    """Return where the server reads the weights: from the node's own disk, if the store's is not that."""
    wanted = profile.scratch.stage_images
    if wanted == "never" or (wanted == "auto" and not is_remote(models)):
        return models / weights.name
    return staged(models, weights, node / FOLDER)


def _served(
    arguments: argparse.Namespace, name: str, section: ModelSection, weights: Path, devices: Sequence[str], logs: Path
) -> int:
    key, stopped = Secret.from_environment(section.key_variable), Event()
    host, port = arguments.host, arguments.port or free_port(arguments.host)
    url, log = f"http://{host}:{port}", logs / f"{weights.name}-{port}.log"
    argv = command_of(section, section.served_name or name, weights, host, port, len(devices))
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ",".join(devices), "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    if key.reveal():
        environment["VLLM_API_KEY"] = key.reveal()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    try:
        with Server(argv, environment, url + section.serve.health, log) as server:
            try:
                server.wait_until_ready(section.serve.start_seconds, stopped.is_set)
                if not stopped.is_set():
                    facts = {"model": section.served_name or name, "base_url": f"{url}/v1", "log": str(log)}
                    print(json.dumps(facts), flush=True)
                server.watch(stopped.is_set)
            except ServerError:
                print(key.scrub(server.last_words()), file=sys.stderr)
                raise
    except ServerError as error:
        print(f"error: the server of {printable(name)}: {error}; its output is in {log}", file=sys.stderr)
        return 1
    return 0
