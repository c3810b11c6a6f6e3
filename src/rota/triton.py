"""Triton without a GPU: takes a device's name, makes `kernel[grid](...)` compile for it and run here, checked.

`rota.triton.use("gfx950")` installs a driver through Triton's own `driver.set_active`; kernels, grids and launches stay
as they are.  Arguments are CPU tensors of torch or NumPy arrays, written in place.  What a launch does wrong is raised.
`rota.triton.check(kernel, signature=...)` compiles a kernel of Triton or Gluon and proves its machine code, for every
launch.  `rota.triton.improve(handle)` gives a compiled kernel a better order, proved.  `rota.triton.judge()` proves
every kernel that Triton compiles from then on and launches nothing, and `python -m rota.triton SCRIPT` runs a script
like that.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import runpy
import statistics
import struct
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, wraps
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, Self

from rota.errors import DeclarationError, Finding, IsaError, ToolchainError, several
from rota.improve.improved_kernel import ImprovedKernel, improve_kernel
from rota.isa.binary.code_object import CodeObject
from rota.isa.binary.toolchain import read_object
from rota.isa.launch.loaded_kernel import LoadedKernel, load_kernel
from rota.isa.launch.orders import LaunchResult
from rota.prove.causes import EARLY, EvidenceLevel, level_of
from rota.prove.kernel_proof import prove_object
from rota.prove.verdict import STEPS_PER_SECOND, Budget, Verdict
from rota.targets.architecture import Architecture
from rota.targets.device import Device
from rota.targets.devices import DEFAULT
from rota.targets.registry import device_named, machine_named

_CONSTANT, _DESCRIPTOR = "constexpr", "tensordesc"
_MOST_THREADS = 1024
_NUMBERS: dict[str, int] = {}  # of devices that were used
SETTING = "ROTA_CHECK_TRITON"
"""The environment variable that asks for `judge`: 1 warns of findings, `error` raises them."""
_SETTINGS = {"": None, "0": None, "off": None, "1": False, "warn": False, "error": True}
JUDGE_BUDGET = Budget(steps=2 * STEPS_PER_SECOND)
"""What `judge` spends on one kernel: the compiler's users wait for it."""
_SURE = (EvidenceLevel.SHOWN, EvidenceLevel.REQUIRED)
_MOST_SHOWN = 3  # findings of one warning


@dataclass(slots=True, kw_only=True, eq=False)
class TritonSession:
    """What was installed: for which device, under how many orders, and what every launch showed.

    It is a context manager as well: at its end Triton has the driver back that it had before.
    """

    device: Architecture
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
    _need_triton()
    chosen = machine_named(device)
    if chosen.unmodelled:
        why = f"nothing executes code for {device} yet"
        raise DeclarationError.of("D105", why, fixes=(f"prove it: rota.triton.check(kernel, ..., device={device!r})",))
    from triton.runtime import driver

    before = driver._active  # noqa: SLF001  # `active` would look for a GPU
    session = TritonSession(device=chosen, orders=orders, seed=seed, check=check, autotune=autotune, _before=before)
    _take_arrays()
    driver.set_active(_Driver(session))
    return session


def _need_triton() -> None:
    if find_spec("triton") is None:
        raise ToolchainError.of("T301", "Triton is not installed", fixes=("pip install 'rota[triton]'",))


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
    """A kernel of Triton or Gluon as machine code for a device or an architecture, by default rota's own default.

    `signature` has the type of each parameter that isn't a constant, as Triton writes it: "*bf16", "i32"; ":16" after
    it says that the pointer or number is a multiple of 16.  Options are those of a launch, as `num_warps`.
    """
    _need_triton()
    chosen = machine_named(DEFAULT.arch if device is None else device)
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


def improve(kernel: Any) -> ImprovedKernel:  # noqa: ANN401  # of Triton
    """Give the loop of a compiled kernel a better order, and let its further launches run that.

    `kernel` is what `kernel[grid](...)` returned: Triton keeps it, and launches it when it is called alike.  If no
    better order is handed over, the kernel stays as it is, and I610 is raised with the reason.
    """
    metadata = kernel.metadata
    made = improve_kernel(
        read_object(kernel.asm["hsaco"]), kernel.name, device_named(metadata.target.arch),
        block=metadata.num_warps * metadata.warp_size, dynamic_lds=metadata.shared,
    )  # fmt: skip
    if kernel.module is not None:
        from triton.runtime import driver

        driver.active.utils.unload_module(kernel.module)
    kernel.asm["hsaco"] = made.code.hsaco
    vars(kernel).update(kernel=made.code.hsaco, module=None, function=None, _run=None)  # loaded by the next launch
    return made


class KernelFindingWarning(UserWarning):
    """A kernel that Triton compiled is wrong: a replay shows it, or a rule of the machine requires what is missing."""


class UnjudgedKernelWarning(UserWarning):
    """The proof of a kernel that Triton compiled ended early or failed; nothing is known of the rest of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedKernel:
    """A kernel that Triton compiled, with its verdict or the reason why it has none."""

    name: str
    arch: str
    file: str
    threads: int
    seconds: float  # that the compilation took longer
    verdict: Verdict | None
    problem: str = ""

    @property
    def outcome(self) -> str:
        """The status of the verdict, or "not judged"."""
        return "not judged" if self.verdict is None else self.verdict.status.value

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Those that are shown or required."""
        return () if self.verdict is None else tuple(each for each in self.verdict.findings if level_of(each) in _SURE)

    @property
    def unknown(self) -> str:
        """Why the kernel isn't fully judged; empty if it is."""
        if self.verdict is None:
            return self.problem
        return next((each.message for each in self.verdict.findings if each.code in EARLY), "")

    def __str__(self) -> str:
        return f"{self.name} ({self.arch}): {self.outcome}"


@dataclass(slots=True, kw_only=True, eq=False)
class TritonJudge:
    """Judges what Triton compiles, as its listener; `kernels` are those judged so far, by their machine code.

    It is a context manager as well: at its end Triton has the listener back that it had before.
    """

    budget: Budget
    raises: bool
    kernels: dict[tuple[object, ...], JudgedKernel] = field(default_factory=dict)
    repeated: int = 0  # compilations whose machine code had its verdict already
    _before: Any = None
    _lock: Lock = field(default_factory=Lock)  # Triton may compile in several threads

    def __call__(self, *, metadata: Mapping[str, Any], metadata_group: Mapping[str, str], **others: object) -> None:
        """As Triton calls it: after each compilation, also where its cache had the machine code."""
        if self._before is not None and not isinstance(self._before, TritonJudge):
            self._before(metadata=metadata, metadata_group=metadata_group, **others)
        if metadata["target"].backend != "hip":
            return
        with self._lock:
            kernel, is_new = self._judge(metadata, metadata_group)
        if kernel.findings and self.raises:
            raise IsaError(*kernel.findings)
        if is_new and kernel.findings:
            warnings.warn(_describe(kernel), KernelFindingWarning, stacklevel=_find_caller())
        elif is_new and kernel.unknown:
            message = f"rota: {kernel.name} ({kernel.arch}) is not fully judged: {kernel.unknown}{_advise(kernel)}"
            with suppress(UnjudgedKernelWarning):  # a filter may make an error of it, but the kernel isn't wrong
                warnings.warn(message, UnjudgedKernelWarning, stacklevel=_find_caller())

    def _judge(self, metadata: Mapping[str, Any], files: Mapping[str, str]) -> tuple[JudgedKernel, bool]:
        """The kernel's verdict, and whether it is a new one.  Whatever goes wrong here is a reason, not an error."""
        started, name, arch, file = time.perf_counter(), "a kernel", str(metadata["target"].arch), ""
        key: tuple[object, ...] = ()
        threads, verdict, problem = 0, None, ""
        try:
            name, lds = str(metadata["name"]), int(metadata["shared"])
            threads = int(metadata["num_warps"]) * int(metadata["target"].warp_size)
            file = next(path for each, path in files.items() if each.endswith(".hsaco"))
            code = Path(file).read_bytes()
            key = (hashlib.sha256(code).hexdigest(), threads, lds, self.budget)
            if key in self.kernels:
                self.repeated += 1
                return self.kernels[key], False
            (verdict,) = prove_object(code, name, block=threads, dynamic_lds=lds, budget=self.budget)
        except Exception as error:  # noqa: BLE001  # the user's compilation goes on
            problem = f"{type(error).__name__}: {error}"
        judged = JudgedKernel(
            name=name,
            arch=arch,
            file=file,
            threads=threads,
            seconds=time.perf_counter() - started,
            verdict=verdict,
            problem=problem,
        )
        self.kernels[key or (name, arch, problem)] = judged
        return judged, True

    def stop(self) -> None:
        """Gives Triton the listener back that it had before."""
        from triton import knobs

        atexit.unregister(self._print_summary)
        if knobs.compilation.listener is self:
            knobs.compilation.listener = self._before

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _print_summary(self) -> None:
        if self.kernels:
            sys.stderr.write(f"{self}\n")

    def __str__(self) -> str:
        return summarise([*self.kernels.values()], self.repeated)


def summarise(kernels: Sequence[JudgedKernel], repeated: int = 0) -> str:
    """How many kernels were judged, with which outcomes and in what time; a line for each with a finding."""
    if not kernels:
        return "rota judged no kernel: Triton compiled none for an AMD GPU"
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in Counter(each.outcome for each in kernels).items())
    seconds = [each.seconds for each in kernels]
    head = (
        f"rota judged {several(len(kernels), 'kernel')} that Triton compiled: {outcomes};"
        f" {statistics.median(seconds):.2f} s each in the median, {sum(seconds):.1f} s in all"
    )
    if repeated:
        head += f"; {several(repeated, 'compilation')} gave machine code that had its verdict"
    rows = [f"  {each}; {', '.join(_count_codes(each.findings))}{_advise(each)}" for each in kernels if each.findings]
    rows += [f"  {each}; {each.unknown}{_advise(each)}" for each in kernels if each.unknown and not each.findings]
    return "\n".join((head, *rows))


def _count_codes(findings: Sequence[Finding]) -> list[str]:
    counts = Counter(each.code for each in findings)
    return [code if count == 1 else f"{count} of {code}" for code, count in counts.items()]


def _describe(kernel: JudgedKernel) -> str:
    shown, rest = kernel.findings[:_MOST_SHOWN], len(kernel.findings) - _MOST_SHOWN
    more = (f"and {several(rest, 'finding')} more",) if rest > 0 else ()
    return "\n".join((f"rota: {kernel}{_advise(kernel)}", *map(str, shown), *more))


def _advise(kernel: JudgedKernel) -> str:
    """The command that says more, with the budget of a command."""
    return f"; try `rota check {kernel.file} --block {kernel.threads}`" if kernel.file else ""


def _find_caller() -> int:
    """How far from the caller of this the first frame is that is neither rota's nor Triton's."""
    import triton

    inside = tuple(f"{Path(file).parent}{os.sep}" for file in (__file__, triton.__file__))
    frame, level = sys._getframe(1), 1  # `warnings` counts from here, too
    while frame.f_back is not None and frame.f_code.co_filename.startswith(inside):
        frame, level = frame.f_back, level + 1
    return level


def judge(*, raises: bool | None = None, budget: Budget | None = None, report: bool = True) -> TritonJudge:
    """Prove every kernel that Triton compiles for an AMD GPU from here on, for all arguments; nothing is launched.

    A finding that is shown or required is a `KernelFindingWarning`, or with `raises` an error where the kernel is
    compiled; by default the environment variable ROTA_CHECK_TRITON decides.  A proof that ends early or fails is an
    `UnjudgedKernelWarning` and never an error.  Equal machine code is proved once.  With `report`, the process prints a
    summary when it ends.
    """
    _need_triton()
    from triton import knobs

    before = knobs.compilation.listener
    shared = before if isinstance(before, TritonJudge) else None  # a second call changes settings alone
    judging = TritonJudge(
        budget=budget or JUDGE_BUDGET,
        raises=bool(read_setting() if raises is None else raises),
        kernels={} if shared is None else shared.kernels,
        _before=before,
    )
    knobs.compilation.listener = judging
    if report and shared is None:
        atexit.register(judging._print_summary)  # noqa: SLF001  # its own
    return judging


def read_setting() -> bool | None:
    """What ROTA_CHECK_TRITON asks for: None for nothing, False for warnings, True for errors."""
    text = os.environ.get(SETTING, "").strip().lower()
    if text not in _SETTINGS:
        raise DeclarationError.of(
            "D102", f"{SETTING} is {text!r:.40}", fixes=(f"{SETTING}=1 warns of findings, {SETTING}=error raises them",)
        )
    return _SETTINGS[text]


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


_UNITS = 1  # that a kernel is told of where nobody has published how many an architecture's devices have


class _Utils:
    """Loading, and what the device is."""

    def __init__(self, device: Architecture) -> None:
        self._device = device

    def get_device_properties(self, device: int) -> Mapping[str, object]:
        machine = self._device
        units = machine.timing.compute_units.value if isinstance(machine, Device) else _UNITS
        return {
            "max_shared_mem": machine.lds_bytes.value,
            "multiprocessor_count": units,
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


def run_script(arguments: Sequence[str]) -> None:
    """Run a script with its arguments as `python` does, and judge what Triton compiles meanwhile."""
    if not arguments:
        raise SystemExit("usage: python -m rota.triton SCRIPT [ARGUMENT]...")
    judge()
    sys.argv[:] = arguments
    sys.path.insert(0, str(Path(arguments[0]).resolve().parent))
    runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    from rota.triton import run_script as run  # the module that others import, not this copy of it

    run(sys.argv[1:])
