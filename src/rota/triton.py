"""Triton without a GPU: takes a device's name, makes `kernel[grid](...)` compile for it and run here, checked.

`rota.triton.use("gfx950")` installs a driver through Triton's own `driver.set_active`; kernels, grids and launches stay
as they are.  Arguments are CPU tensors of torch or NumPy arrays, written in place.  What a launch does wrong is raised.
`rota.triton.check(kernel, signature=...)` compiles a kernel of Triton or Gluon and proves its machine code, for every
launch.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, wraps
from importlib.util import find_spec
from types import TracebackType
from typing import Any, Self

from rota.errors import DeclarationError, ToolchainError
from rota.isa.binary.code_object import CodeObject
from rota.isa.binary.toolchain import read_object
from rota.isa.launch.loaded_kernel import LoadedKernel, load_kernel
from rota.isa.launch.orders import LaunchResult
from rota.prove.kernel_proof import prove_object
from rota.prove.verdict import Budget, Verdict
from rota.targets.device import Device
from rota.targets.devices import DEFAULT
from rota.targets.registry import device_named

_CONSTANT, _DESCRIPTOR = "constexpr", "tensordesc"
_MOST_THREADS = 1024
_NUMBERS: dict[str, int] = {}  # of devices that were used


@dataclass(slots=True, kw_only=True, eq=False)
class TritonSession:
    """What was installed: for which device, under how many orders, and what every launch showed.

    It is a context manager as well: at its end Triton has the driver back that it had before.
    """

    device: Device
    orders: int
    seed: int
    check: bool
    autotune: bool
    results: list[tuple[str, LaunchResult]] = field(default_factory=list)
    compiling_only: bool = False  # while a configuration is tried
    _before: object = None

    def stop(self) -> None:
        """Gives Triton its driver back."""
        from triton.runtime import driver

        if getattr(driver._active, "session", None) is self:  # noqa: SLF001  # `active` would look for a GPU
            driver.set_active(self._before)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def use(device: str, *, orders: int = 3, seed: int = 0, check: bool = True, autotune: bool = False) -> TritonSession:
    """Makes Triton compile for `device`, an architecture or the name of a GPU, and run every launch under `orders`.

    With `check`, findings are raised where the kernel is launched; `results` of the session has them in any case.  An
    autotuned kernel is run in the first configuration that fits the device, or with `autotune` in all of them.
    """
    chosen = _install(device)
    from triton.runtime import driver

    before = driver._active  # noqa: SLF001  # `active` would look for a GPU
    session = TritonSession(device=chosen, orders=orders, seed=seed, check=check, autotune=autotune, _before=before)
    _take_arrays()
    driver.set_active(_Driver(session))
    return session


def _install(device: str | None) -> Device:
    chosen = device_named(DEFAULT.arch if device is None else device)
    if find_spec("triton") is None:
        raise ToolchainError.of("T301", "Triton is not installed", fixes=("pip install 'rota[triton]'",))
    return chosen


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledKernel:
    """Machine code with what a launch needs besides: threads of a workgroup, and LDS that the launch asks for."""

    code: CodeObject
    threads: int
    dynamic_lds: int


def compile_kernel(
    kernel: object,
    *,
    signature: Mapping[str, str],
    constants: Mapping[str, object] | None = None,
    device: str | None = None,
    **options: object,
) -> CompiledKernel:
    """A kernel of Triton or Gluon as machine code for a device, by default rota's own default.

    `signature` has the type of each parameter that isn't a constant, as Triton writes it: "*bf16", "i32"; ":16" after
    it says that the pointer or number is a multiple of 16.  Options are those of a launch, as `num_warps`.
    """
    chosen = _install(device)
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    from triton.experimental.gluon._runtime import GluonASTSource, GluonJITFunction

    if not isinstance(kernel, triton.JITFunction):
        raise DeclarationError.of("D104", f"{kernel!r:.80} is no kernel: expected a function under @triton.jit")
    fixed = dict(constants or {})
    _check_signature(kernel, signature, fixed)
    types = {name: signature[name].partition(":")[0] if name in signature else _CONSTANT for name in kernel.arg_names}
    multiples = {
        (place,): [["tt.divisibility", 16]]
        for place, name in enumerate(kernel.arg_names)
        if signature.get(name, "").endswith(":16")
    }
    source = GluonASTSource if isinstance(kernel, GluonJITFunction) else ASTSource
    target = GPUTarget("hip", chosen.arch, chosen.lanes.value)
    made = triton.compile(source(kernel, types, fixed, multiples), target=target, options=options)
    return CompiledKernel(
        code=read_object(made.asm["hsaco"]),
        threads=made.metadata.num_warps * made.metadata.warp_size,
        dynamic_lds=made.metadata.shared,
    )


def check(
    kernel: object,
    *,
    signature: Mapping[str, str],
    constants: Mapping[str, object] | None = None,
    device: str | None = None,
    budget: Budget | None = None,
    **options: object,
) -> Verdict:
    """Is the machine code of a kernel right for every grid and all arguments: the verdict of `rota check`."""
    made = compile_kernel(kernel, signature=signature, constants=constants, device=device, **options)
    (verdict,) = prove_object(made.code, block=made.threads, dynamic_lds=made.dynamic_lds, budget=budget)
    return verdict


def _check_signature(kernel: Any, signature: Mapping[str, str], constants: Mapping[str, object]) -> None:  # noqa: ANN401
    names = set(kernel.arg_names)
    missing = [name for name in kernel.arg_names if name not in signature and name not in constants]
    unknown = [name for name in (*signature, *constants) if name not in names]
    if missing or unknown:
        raise DeclarationError.of(
            "D102",
            f"the signature doesn't fit {kernel.__name__}",
            evidence=(("without a type or value", ", ".join(missing)), ("no parameter", ", ".join(unknown))),
            fixes=('signature={"x": "*fp32", "n": "i32"}, constants={"BLOCK": 256}',),
        )


class _Driver:
    """The members of a driver that Triton asks for."""

    def __init__(self, session: TritonSession) -> None:
        self.session = session
        self.utils = _Utils(session.device)
        self.launcher_cls = _Launcher

    def get_current_target(self) -> object:
        from triton.backends.compiler import GPUTarget

        return GPUTarget("hip", self.session.device.arch, self.session.device.lanes.value)

    def get_active_torch_device(self) -> object:
        import torch

        return torch.device("cpu")

    def get_current_device(self) -> int:
        """A number for each device: Triton keeps what it has compiled by it."""
        return _NUMBERS.setdefault(self.session.device.name, len(_NUMBERS))

    def set_current_device(self, device: int) -> None:
        """There is one at a time."""

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_benchmarker(self) -> Callable[..., list[float]]:
        return _Chooser()


class _Binary:
    """A compiled kernel, read when it is first run: most configurations of an autotuned one never are."""

    def __init__(self, name: str, code: bytes) -> None:
        self.name, self._code = name, code

    @cached_property
    def kernel(self) -> LoadedKernel:
        return load_kernel(self._code, self.name)


class _Utils:
    """Loading, and what the device is."""

    def __init__(self, device: Device) -> None:
        self._device = device

    def get_device_properties(self, device: int) -> Mapping[str, object]:
        machine = self._device
        return {
            "max_shared_mem": machine.lds_bytes.value,
            "multiprocessor_count": machine.timing.compute_units.value,
            "warpSize": machine.lanes.value,
            "arch": machine.arch,
        }

    def load_binary(self, name: str, binary: bytes, shared: int, device: int) -> tuple[Any, ...]:
        return name, _Binary(name, binary), 0, 0, _MOST_THREADS

    def unload_module(self, module: object) -> None:
        """Nothing was put anywhere."""


class _Launcher:
    """One compiled kernel: takes what it is called with, gives it to a launch.

    Triton keeps it for as long as the kernel, so it asks for the session of the moment.
    """

    def __init__(self, source: Any, metadata: Any) -> None:  # noqa: ANN401  # of Triton
        self._metadata = metadata
        self._signature = tuple(source.signature.values())

    def __call__(  # noqa: PLR0917  # as Triton calls it
        self,
        x: int,
        y: int,
        z: int,
        stream: int,
        binary: _Binary,
        packed: object,
        launch_metadata: object,
        enter: Callable[[object], None] | None,
        leave: Callable[[object], None] | None,
        *args: object,
    ) -> None:
        session, metadata = _session(), self._metadata
        if session.compiling_only or 0 in {x, y, z}:
            return
        values = [value for kind, each in zip(self._signature, args, strict=True) for value in _flat(kind, each)]
        scratch = (metadata.global_scratch_size, metadata.profile_scratch_size)  # for each workgroup
        values += [bytearray(size * x * y * z) if size else None for size in scratch]
        if enter is not None:
            enter(launch_metadata)
        result = binary.kernel.launch(
            *values,
            grid=(x, y, z),
            block=metadata.num_warps * metadata.warp_size,
            dynamic_lds=metadata.shared,
            orders=session.orders,
            seed=session.seed,
            check=False,
        )
        session.results.append((binary.name, result))
        if leave is not None:
            leave(launch_metadata)
        if session.check:
            result.raise_findings()


class _Chooser:
    """Times nothing: the first configuration that fits is the one, and a further one is run if all are asked for.

    An autotuner keeps it, so it asks for the session of the moment.
    """

    def __init__(self) -> None:
        self._tuned: object = None  # the arguments of the launch for which one was found
        self._tried = 0

    def __call__(self, call: Callable[[], None], **_: object) -> list[float]:
        session, tuned = _session(), _tuned_by(call)
        if tuned is not None and tuned is self._tuned and not session.autotune:
            return [float("inf")] * 3
        session.compiling_only = not session.autotune
        try:
            call()
        finally:
            session.compiling_only = False
        self._tuned = tuned
        self._tried += 1
        return [float(self._tried)] * 3


def _session() -> TritonSession:
    from triton.runtime import driver

    found = driver.active.session
    assert isinstance(found, TritonSession)  # noqa: S101  # nobody else calls this
    return found


def _tuned_by(call: Callable[[], None]) -> object:
    """The arguments that an autotuner keeps while it tries one launch; None if Triton keeps them elsewhere."""
    names, cells = call.__code__.co_freevars, call.__closure__ or ()
    tuner = next((cell.cell_contents for name, cell in zip(names, cells, strict=True) if name == "self"), None)
    return getattr(tuner, "nargs", None)


def _flat(kind: Any, value: Any) -> Iterator[object]:  # noqa: ANN401  # a type as Triton writes it, and anything
    """A launch's values of one parameter: constants are compiled in, tuples and descriptors taken apart."""
    if isinstance(kind, tuple):
        for each, part in zip(kind, value, strict=True):
            yield from _flat(each, part)
    elif kind.startswith(_DESCRIPTOR):
        yield from (value.base, *value.shape, *value.strides, value.padding == "nan", value.round_f32_to_tf32)
        yield from (*value.shape, *value.strides)
    elif kind == "bf16":  # by value: the upper half of a float
        yield struct.pack("<f", value)[2:]
    elif kind.startswith(("fp", "f")):
        yield float(value)
    elif kind != _CONSTANT:
        yield int(value) if isinstance(value, bool) else value


class _Array:
    """A NumPy array, as Triton wants a tensor."""

    def __init__(self, array: Any) -> None:  # noqa: ANN401  # an array of NumPy, which need not be imported here
        self.array, self.dtype, self.shape, self.device = array, array.dtype, array.shape, "cpu"

    def data_ptr(self) -> int:
        return int(self.array.ctypes.data)

    def element_size(self) -> int:
        return int(self.array.itemsize)

    def stride(self) -> Sequence[int]:
        return tuple(step // self.array.itemsize for step in self.array.strides)

    def numpy(self) -> object:
        return self.array

    def detach(self) -> _Array:
        return self


def _take_arrays() -> None:
    """Lets kernels be called with NumPy arrays as well; other drivers never see a difference."""
    from triton.runtime import driver
    from triton.runtime.jit import JITFunction

    run = JITFunction.run
    if getattr(run, "takes_arrays", False):
        return

    @wraps(run)
    def with_arrays(self: object, *args: object, **kwargs: object) -> object:
        if not isinstance(driver._active, _Driver):  # noqa: SLF001  # `active` would look for a GPU
            return run(self, *args, **kwargs)
        named = {name: _as_tensor(each) for name, each in kwargs.items()}
        return run(self, *map(_as_tensor, args), **named)

    with_arrays.takes_arrays = True  # type: ignore[attr-defined]  # a mark
    JITFunction.run = with_arrays


def _as_tensor(value: object) -> object:
    is_array = hasattr(value, "__array_interface__") and hasattr(value, "ctypes")
    return _Array(value) if is_array and not hasattr(value, "data_ptr") else value
