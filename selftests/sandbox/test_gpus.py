"""GPUs from a fake /dev and a fake driver; there is none on most machines."""

import pytest

from pytest_otval.core import Conclusion
from pytest_otval.sandbox.gpus import Gpu, environment, find_gpus, require_gpus, runtime_flags, suitable

UUIDS = [f"GPU-{number}2345678-1234-1234-1234-123456789abc" for number in range(3)]


@pytest.fixture
def machine(tmp_path):
    """Make nodes for minors, and what the driver says of some, in PCI order."""

    def make(minors, driver=()):
        dev, proc = tmp_path / "dev", tmp_path / "proc"
        dev.mkdir()
        for name in ("nvidiactl", "nvidia-uvm", "nvidia-caps", "nvidia0x", *(f"nvidia{minor}" for minor in minors)):
            (dev / name).touch()
        for slot, (minor, uuid, model) in enumerate(driver):
            (proc / f"0000:{slot}a:00.0").mkdir(parents=True)
            text = f"Model: \t\t {model}\nIRQ:   \t\t 16\nGPU UUID: \t {uuid}\nDevice Minor: \t {minor}\n"
            (proc / f"0000:{slot}a:00.0" / "information").write_text(text)
        return dev, proc

    return make


def test_no_gpu(tmp_path):
    assert find_gpus(tmp_path, tmp_path / "none", None) == ()


def test_nodes_without_a_word_of_the_driver(machine):
    assert find_gpus(*machine([10, 2, 0]), None) == (Gpu(0), Gpu(2), Gpu(10))


def test_driver_tells_order_name_and_model(machine):
    dev, proc = machine([0, 1], [(1, UUIDS[0], "NVIDIA L40"), (0, "GPU-????????-????", "Tesla T4"), (7, "", "gone")])
    assert find_gpus(dev, proc, None) == (Gpu(1, UUIDS[0], "NVIDIA L40"), Gpu(0, "", "Tesla T4"))


def test_a_node_that_cannot_be_opened_is_not_ours(machine):
    dev, proc = machine([0, 1])
    (dev / "nvidia0").unlink()
    (dev / "nvidia0").symlink_to("nowhere")
    assert find_gpus(dev, proc, None) == (Gpu(1),)


@pytest.mark.parametrize(
    ("visible", "minors"),
    [
        ("", []),
        ("-1", []),
        ("NoDevFiles", []),
        ("1", [2]),
        ("2,0", [3, 0]),
        (" 0 , 1 ", [0, 2]),
        ("0,9,1", [0]),
        ("1,1", [2]),
        (UUIDS[1], [2]),
        ("GPU-2", [3]),
        ("GPU-", []),
        (f"MIG-{UUIDS[0]}", []),
    ],
)
def test_visible_devices(machine, visible, minors):
    dev, proc = machine([0, 2, 3], [(minor, UUIDS[number], "x") for number, minor in enumerate((0, 2, 3))])
    assert [gpu.minor for gpu in find_gpus(dev, proc, visible)] == minors


@pytest.mark.parametrize(
    ("type", "models"),
    [
        ("A100", ["NVIDIA A100-SXM4-80GB", "NVIDIA A100-PCIE-40GB"]),
        ("a100-80gb", ["NVIDIA A100-SXM4-80GB"]),
        ("L4", []),
        ("T4", ["Tesla T4"]),
        ("H100", []),
    ],
)
def test_types(type, models):
    names = ["NVIDIA A100-SXM4-80GB", "NVIDIA A100-PCIE-40GB", "NVIDIA L40S", "Tesla T4"]
    gpus = [Gpu(number, model=name) for number, name in enumerate(names)]
    assert [gpu.model for gpu in suitable(gpus, [type])] == models
    assert list(suitable(gpus, [])) == gpus


def test_too_few():
    assert require_gpus([Gpu(0), Gpu(1)], 2, []) == (Gpu(0), Gpu(1))
    with pytest.raises(Conclusion, match="no-gpu: the task asks for 2 GPUs, and this machine has 1"):
        require_gpus([Gpu(0)], 2, [])


def test_others_are_closed(machine):
    dev, _ = machine([0, 1, 2])
    assert runtime_flags([Gpu(1)], dev) == [
        *("--nv", "--bind", "/proc/self/root/dev/nvidia0:/dev/nvidia0"),
        *("--bind", "/proc/self/root/dev/nvidia2:/dev/nvidia2"),
    ]
    assert runtime_flags([], dev) == []


def test_environment():
    env = {"LD_LIBRARY_PATH": "/opt/lib", "CUDA_VISIBLE_DEVICES": "all", "A": "b"}
    assert environment([], env) is env
    assert environment([Gpu(4), Gpu(5)], {})["NVIDIA_VISIBLE_DEVICES"] == "0,1"
    assert environment([Gpu(4, UUIDS[0]), Gpu(5, UUIDS[1])], env) == {
        "A": "b",
        "CUDA_VISIBLE_DEVICES": f"{UUIDS[0]},{UUIDS[1]}",
        "NVIDIA_VISIBLE_DEVICES": f"{UUIDS[0]},{UUIDS[1]}",
        "LD_LIBRARY_PATH": "/opt/lib:/.singularity.d/libs",
    }
