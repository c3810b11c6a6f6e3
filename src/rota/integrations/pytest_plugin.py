"""A plug-in for pytest: takes marked tests, runs each for several devices and orders, gives findings as failures.

    @pytest.mark.rota(devices=("gfx942", "gfx950"), orders=6)
    def test_reverse(rota_launch):
        x, y = np.arange(512, dtype=np.int32), np.zeros(512, np.int32)
        rota_launch("reverse.hip", x, y, grid=2, block=256)
        assert (y.reshape(2, 256) == x.reshape(2, 256)[:, ::-1]).all()

    def test_for_all_arguments(assert_proved):
        assert_proved("reverse.hip", block=256)

A marked test of Triton kernels needs no fixture: Triton has rota's driver while it runs.  Nothing heavy is imported,
and no test changed, before a test asks for it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rota.errors import RotaError

if TYPE_CHECKING:
    from rota.isa.launch.loaded_kernel import LoadedKernel
    from rota.isa.launch.orders import LaunchResult
    from rota.prove.verdict import Verdict
    from rota.triton import TritonSession

MARKER, DEVICE, LAUNCH, PROVED = "rota", "rota_device", "rota_launch", "assert_proved"
_FOUND = "rota_findings"  # of a report
_DEFAULT_ORDERS = 6
_MOST_ORDERS = 1000
_PACKAGE = Path(__file__).parents[1]
_session = pytest.StashKey["TritonSession"]()
_kernels = pytest.StashKey[dict[tuple[object, ...], "LoadedKernel"]]()
_launched = pytest.StashKey[list["LaunchResult"]]()  # by the fixture
_driven = pytest.StashKey[tuple["TritonSession", int]]()  # a test's session, and the launches before the test


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--rota-device`, `--rota-orders`, and the same in a configuration file."""
    group = parser.getgroup("rota", "GPU kernels without a GPU")
    group.addoption(
        "--rota-device",
        action="append",
        metavar="DEVICE",
        help="run tests for this GPU or architecture instead of those that their markers name; may be repeated",
    )
    group.addoption("--rota-orders", type=_orders, metavar="N", help="run every launch under N orders of its waves")
    parser.addini("rota_device", "GPUs that tests run for if their markers name none", type="args")
    parser.addini("rota_orders", "orders of a launch if a test's marker names none")


def pytest_configure(config: pytest.Config) -> None:
    """The marker; and Triton's driver, if a device is named: modules may ask for it when they are collected."""
    config.addinivalue_line(
        "markers", f"{MARKER}(devices, orders, seed): run the test for several GPUs, each launch under several orders"
    )
    config.stash[_kernels] = {}
    named = _devices_of(config)
    if named and find_spec("triton") is not None:
        config.stash[_session] = _triton(named[0], _orders_of(config) or _DEFAULT_ORDERS, 0)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Triton has its driver back."""
    if (session := config.stash.get(_session, None)) is not None:
        session.stop()


def pytest_report_header(config: pytest.Config) -> list[str]:
    """For which devices, if the run was asked for some."""
    named = _devices_of(config)
    return [f"rota: {', '.join(named)}, {_orders_of(config) or _DEFAULT_ORDERS} orders"] if named else []


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A marked test, or one that uses a fixture of rota's, runs once for each device."""
    marked = metafunc.definition.get_closest_marker(MARKER) is not None
    if not marked and not {DEVICE, LAUNCH, PROVED} & {*metafunc.fixturenames}:
        return
    asked = _Asked.of(metafunc.definition, metafunc.config)
    if DEVICE not in metafunc.fixturenames:
        metafunc.fixturenames.append(DEVICE)
    metafunc.parametrize(DEVICE, asked.devices, indirect=True)


def pytest_itemcollected(item: pytest.Item) -> None:
    """A marked test needs no fixture in its signature; pytest forgets names that it didn't find there."""
    names: list[str] = getattr(item, "fixturenames", [])
    if item.get_closest_marker(MARKER) is not None and DEVICE not in names:
        names.insert(0, DEVICE)


@pytest.fixture
def rota_device(request: pytest.FixtureRequest) -> Iterator[str]:
    """The architecture that the test runs for; Triton, if it is there, compiles for it and runs on rota."""
    asked = _Asked.of(request.node, request.config)
    device: str = getattr(request, "param", asked.devices[0])
    if "triton" not in sys.modules:
        yield device
        return
    with _triton(device, asked.orders, asked.seed) as session:
        request.node.stash[_driven] = session, 0
        yield device


@pytest.fixture
def rota_launch(request: pytest.FixtureRequest, rota_device: str) -> Callable[..., LaunchResult]:
    """Launches a kernel: a code object, HIP source that is compiled for the device, bytes, or a `LoadedKernel`.

    `rota_launch(kernel, *args, grid=..., block=..., name=None)` takes what `LoadedKernel.launch` takes.  A path is
    relative to the test's file.
    """
    asked = _Asked.of(request.node, request.config)
    folder, known = request.path.parent, request.config.stash[_kernels]
    launched = request.node.stash.setdefault(_launched, [])

    def launch(
        kernel: str | Path | bytes | LoadedKernel, *args: Any, name: str | None = None, **how: Any
    ) -> LaunchResult:
        loaded = _load(kernel, name, rota_device, folder, known)
        if loaded.facts.arch != rota_device:
            pytest.skip(f"the code object is for {loaded.facts.arch}, not for {rota_device}")
        result = loaded.launch(*args, **({"orders": asked.orders, "seed": asked.seed} | how))
        launched.append(result)
        return result

    return launch


@pytest.fixture
def assert_proved(request: pytest.FixtureRequest, rota_device: str) -> Callable[..., tuple[Verdict, ...]]:
    """Proves machine code for all arguments, paths and orders: a code object, or HIP source compiled for the device.

    `assert_proved(kernel, name=None, block=..., dynamic_lds=..., policies=..., budget=...)` takes what
    `rota.prove.kernel_proof.prove_object` takes, and fails with what was found unless every kernel is proved.  A path
    is relative to the test's file.
    """
    folder = request.path.parent

    def proved(kernel: str | Path | bytes, name: str | None = None, **how: Any) -> tuple[Verdict, ...]:
        from rota.isa.binary.hip_source import HIP_SUFFIXES, compile_hip
        from rota.prove import kernel_proof

        if isinstance(kernel, bytes):
            return kernel_proof.assert_proved(kernel, name, **how)
        path = folder / kernel
        source = compile_hip(path, rota_device).hsaco if path.suffix in HIP_SUFFIXES else path
        return kernel_proof.assert_proved(source, name, **how)

    return proved


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Launches of the run's session belong to the test that makes them."""
    if (session := item.config.stash.get(_session, None)) is not None:
        item.stash[_driven] = session, len(session.results)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Findings instead of a traceback: the test's own lines, and below them what is wrong.

    A test that passes carries what its launches found nevertheless: the summary shows it, whichever process ran it.
    """
    report = yield
    error = call.excinfo
    if report.passed and call.when == "call" and (found := _findings_of(item)):
        setattr(report, _FOUND, found)
    if report.failed and error is not None and isinstance(error.value, RotaError) and _concerns(item):
        own = [entry for entry in error.traceback if not Path(entry.path).is_relative_to(_PACKAGE)]
        tests = [entry for entry in own if "site-packages" not in Path(entry.path).parts]
        if tests:
            error.traceback = type(error.traceback)(tests)
        report.longrepr = error.getrepr(style="short", tbfilter=False)
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What tests that pass have found: a line a finding, with the test, the code and the message."""
    passed = [each for each in terminalreporter.stats.get("passed", []) if hasattr(each, _FOUND)]
    if passed:
        terminalreporter.section("rota")
    for report in passed:
        for severity, code, message in getattr(report, _FOUND):
            terminalreporter.line(f"{report.nodeid}: {severity}[{code}] {message}")


def _findings_of(item: pytest.Item) -> list[tuple[str, str, str]]:
    """Severity, code and message of each distinct finding of the test's launches, notes included."""
    results = item.stash.get(_launched, [])
    if _driven in item.stash:
        session, before = item.stash[_driven]
        results = [*results, *(result for _, result in session.results[before:])]
    found = (finding for result in results for finding in (*result.findings, *result.notes))
    return [*dict.fromkeys((str(each.severity.value), each.code, each.message) for each in found)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What a test asks for: the command line first, then its marker, then the configuration."""

    devices: tuple[str, ...]
    orders: int
    seed: int

    @classmethod
    def of(cls, item: Any, config: pytest.Config) -> _Asked:  # noqa: ANN401  # a test, or its definition
        marker = item.get_closest_marker(MARKER)
        told = {} if marker is None else _check(marker, item.nodeid)
        named = _devices_of(config)
        devices = named if config.getoption("rota_device") else told.get("devices", named)
        orders = config.getoption("rota_orders") or told.get("orders") or _orders_of(config) or _DEFAULT_ORDERS
        return cls(devices=devices or (_default(),), orders=orders, seed=told.get("seed", 0))


def _check(marker: pytest.Mark, test: str) -> dict[str, Any]:
    """A marker's arguments; what it can't mean ends the collection of its file."""
    told, problem = dict(marker.kwargs), ""
    if marker.args:
        problem = f"takes devices, orders and seed by name, not {marker.args!r:.60}"
    elif unknown := told.keys() - {"devices", "orders", "seed"}:
        problem = f"has no {min(unknown)!r}; it takes devices, orders and seed"
    elif not _is_number(told.get("orders", 1), 1, _MOST_ORDERS):
        problem = f"orders is {told['orders']!r:.60}, not a number from 1 to {_MOST_ORDERS}"
    elif not _is_number(told.get("seed", 0), 0, 1 << 31):
        problem = f"seed is {told['seed']!r:.60}, not a number from 0"
    elif "devices" in told:
        given = told["devices"]
        names = (given,) if isinstance(given, str) else given
        if not isinstance(names, Sequence) or not names or not all(isinstance(each, str) for each in names):
            problem = f"devices is {given!r:.60}, not one or several names of GPUs"
        else:
            try:
                told["devices"] = tuple(map(_arch, names))
            except RotaError as error:
                problem = str(error)
    if problem:
        pytest.fail(f"{test}: the marker rota {problem}", pytrace=False)
    return told


def _is_number(value: object, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _orders(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= _MOST_ORDERS:
        raise pytest.UsageError(f"rota_orders is {text!r}, not a number from 1 to {_MOST_ORDERS}")
    return int(text)


def _orders_of(config: pytest.Config) -> int | None:
    asked: int | None = config.getoption("rota_orders")
    text = config.getini("rota_orders")
    return asked or (_orders(text) if text else None)


def _devices_of(config: pytest.Config) -> tuple[str, ...]:
    """Those that the command line names, or the configuration."""
    named = config.getoption("rota_device") or config.getini("rota_device")
    try:
        return tuple(map(_arch, named))
    except RotaError as error:
        raise pytest.UsageError(str(error)) from error


def _default() -> str:
    from rota.targets.registry import default

    return default().arch


def _arch(name: str) -> str:
    from rota.targets.registry import machine_named

    return machine_named(name).arch


def _concerns(item: pytest.Item) -> bool:
    """Does the test have to do with rota?  The errors of others are shown as pytest shows them."""
    return item.get_closest_marker(MARKER) is not None or DEVICE in getattr(item, "fixturenames", ())


def _triton(device: str, orders: int, seed: int) -> TritonSession:
    from rota.triton import use

    return use(device, orders=orders, seed=seed)


def _load(
    kernel: str | Path | bytes | LoadedKernel,
    name: str | None,
    device: str,
    folder: Path,
    known: dict[tuple[object, ...], LoadedKernel],
) -> LoadedKernel:
    """The kernel, read or compiled once in a run of tests."""
    from rota.isa.binary.hip_source import HIP_SUFFIXES
    from rota.isa.launch.loaded_kernel import LoadedKernel as Loaded, load_kernel, load_source

    if isinstance(kernel, Loaded):
        return kernel
    if isinstance(kernel, bytes):
        return load_kernel(kernel, name, arch=device)
    path = folder / kernel
    key = (path, path.stat().st_mtime_ns if path.is_file() else 0, name, device)
    if key not in known:
        source = path.suffix in HIP_SUFFIXES
        known[key] = load_source(path, device, name) if source else load_kernel(path, name, arch=device)
    return known[key]
