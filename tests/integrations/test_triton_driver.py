"""What `rota.triton` gives Triton, asked as Triton asks; tests/triton has the real one, where it is installed."""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import rota.triton
from rota import IsaError
from tests.findings.smallest import raised
from tests.isa.sources import compiled

SOURCE = (
    "KERNEL(const float* x, float* y, float factor, int n, void* a, void* b) { if (ID < n) y[ID] = factor * x[ID]; }"
)


class JitFunction:
    """What stands for Triton's: remembers what it was run with."""

    seen: tuple[object, ...] = ()

    def run(self, *args: object, **kwargs: object) -> None:
        JitFunction.seen = (*args, *kwargs.values())


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Triton's `driver`, and the few other names that are asked for."""
    config = SimpleNamespace(_active=None)
    config.set_active = lambda active: vars(config).update(_active=active, active=active)
    modules = {name: ModuleType(name) for name in ("triton", "triton.runtime", "triton.runtime.jit", "torch")}
    modules["triton.backends"] = ModuleType("triton.backends")
    modules["triton.backends.compiler"] = ModuleType("triton.backends.compiler")
    vars(modules["triton.runtime"]).update(driver=config)
    vars(modules["triton.runtime.jit"]).update(JITFunction=type("JITFunction", (JitFunction,), {}))
    vars(modules["triton.backends.compiler"]).update(GPUTarget=lambda *target: target)
    vars(modules["torch"]).update(device=lambda name: name)
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(rota.triton, "find_spec", lambda name: name)
    return config


def launcher(driver: Any, signature: dict[str, object], **metadata: object) -> Callable[..., None]:
    told = {"num_warps": 1, "warp_size": 64, "shared": 0, "global_scratch_size": 0, "profile_scratch_size": 0}
    source = SimpleNamespace(signature=signature)
    made: Callable[..., None] = driver.active.launcher_cls(source, SimpleNamespace(**{**told, **metadata}))
    return made


SIGNATURE: dict[str, object] = {"x": "*fp32", "y": "*fp32", "factor": "fp32", "n": "i32", "BLOCK": "constexpr"}


def test_a_launch_writes_its_arrays_and_tells_its_findings(driver: Any) -> None:
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    told: list[object] = []
    with rota.triton.use("gfx950", orders=2) as session:
        _, binary, *_ = driver.active.utils.load_binary("k", compiled(SOURCE, "gfx950").hsaco, 0, 0)
        launch = launcher(driver, SIGNATURE, global_scratch_size=16)
        launch(1, 1, 1, 0, binary, (), "launch", told.append, told.append, x, y, 0.5, 64, 64)
        assert (y == x / 2).all()
        assert told == ["launch", "launch"]
        launch(0, 1, 1, 0, binary, (), None, None, None, x, y, 9.0, 64, 64)  # a grid without workgroups
        assert (y == x / 2).all()
        with pytest.raises(IsaError):
            launch(1, 1, 1, 0, binary, (), None, None, None, x, y[:60], 0.5, 64, 64)
    assert [(name, result.ok) for name, result in session.results] == [("k", True), ("k", False)]
    assert driver._active is None


def test_what_the_driver_says_of_the_device(driver: Any) -> None:
    with rota.triton.use("mi300x"):
        active = driver.active
        assert active.get_current_target() == ("hip", "gfx942", 64)
        assert active.get_active_torch_device() == "cpu"
        assert active.utils.get_device_properties(0)["max_shared_mem"] == 65536
        active.set_current_device(active.get_current_device())
        active.utils.unload_module("k")
        assert active.get_current_stream(0) == 0
        with rota.triton.use("gfx950"):
            assert driver.active.get_current_device() != active.get_current_device()
        assert driver.active is active


def test_parameters_are_taken_apart() -> None:
    descriptor = SimpleNamespace(base="base", shape=[2, 3], strides=[3, 1], padding="nan", round_f32_to_tf32=False)
    flat = rota.triton._flat
    assert [*flat("tensordesc<fp16[16, 16]>", descriptor)] == ["base", 2, 3, 3, 1, True, False, 2, 3, 3, 1]
    assert [*flat(("i32", ("constexpr", "*fp32")), (7, (8, "x")))] == [7, "x"]
    assert [*flat("bf16", 1.5)] == [struct.pack("<f", 1.5)[2:]]
    assert [*flat("fp32", 2)] == [2.0]
    assert [*flat("i1", True)] == [1]


class Tuner:
    """What an autotuner does with a benchmarker, for one launch: every configuration, in turn."""

    def __init__(self, benchmark: Callable[..., list[float]]) -> None:
        self.nargs, self.benchmark, self.ran = {"n": 1}, benchmark, list[int]()

    def time(self, number: int) -> float:
        def call() -> None:
            if number == 0:
                raise MemoryError  # Triton knows which errors mean that a configuration doesn't fit
            self.ran.append(number)

        return self.benchmark(call, quantiles=(0.5,))[0]


def chosen(tuner: Tuner) -> list[float]:
    found = []
    for number in range(4):
        try:
            found.append(tuner.time(number))
        except MemoryError:
            found.append(float("inf"))
    return found


def test_the_first_configuration_that_fits_is_chosen(driver: Any) -> None:
    with rota.triton.use("gfx950"):
        tuner = Tuner(driver.active.get_benchmarker())
        times = chosen(tuner)
    assert (times.index(min(times)), tuner.ran) == (1, [1])
    with rota.triton.use("gfx950", autotune=True):
        times, tuner.ran = chosen(tuner), []
    assert times.index(min(times)) == 1
    assert sorted(times)[:3] == times[1:]


def test_arrays_of_numpy_are_given_to_triton_as_tensors(driver: Any) -> None:
    from triton.runtime.jit import JITFunction

    array = np.zeros((3, 4), np.float16)
    with rota.triton.use("gfx950"), rota.triton.use("gfx942"):
        JITFunction().run(array, 5, grid=(1,), other=array)
    tensor, number, _, other = JitFunction.seen
    assert isinstance(tensor, rota.triton._Array)
    assert (tensor.data_ptr(), tensor.stride(), tensor.element_size()) == (array.ctypes.data, (4, 1), 2)
    assert tensor.detach().numpy() is array
    assert (number, type(other)) == (5, rota.triton._Array)
    JITFunction().run(array)
    assert JitFunction.seen[0] is array


def test_without_triton_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rota.triton, "find_spec", lambda name: None)
    assert "rota[triton]" in str(raised("T301", lambda: rota.triton.use("gfx950")))
