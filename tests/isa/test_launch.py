"""Launching: arguments of every kind, all that a runtime fills in, results in place, orders compared."""

from __future__ import annotations

import ctypes
import struct
from functools import cache
from typing import Any

import numpy as np
import pytest

from rota import IsaError, LoadedKernel, load_kernel
from rota.errors import Severity
from rota.isa.launch.interleaving import EARLIEST, LATEST, backwards
from tests.findings.smallest import raised
from tests.isa.sources import compiled
from tests.wording.golden import mentions, worded

ARCHS = pytest.mark.parametrize("arch", ["gfx942", "gfx950"])


@cache
def kernel(source: str, arch: str = "gfx950") -> LoadedKernel:
    return load_kernel(compiled(source, arch).hsaco)


def test_results_are_written_in_place() -> None:
    x, y = np.arange(100, dtype=np.int32), np.zeros(100, np.int32)
    source = "KERNEL(const int* x, int* y, int n) { int i = blockIdx * 64 + ID; if (i < n) y[i] = 2 * x[i]; }"
    source = source.replace("blockIdx", "__builtin_amdgcn_workgroup_id_x()")
    result = kernel(source).launch(x, y, 100, grid=2, block=64, orders=3)
    assert (y == 2 * np.arange(100)).all()
    assert (x == np.arange(100)).all()
    assert (result.findings, result.notes, result.ok) == ((), (), True)
    assert result.orders == ("latest", "earliest", "backwards")
    assert result.instructions > 0
    assert mentions(worded(str(result)), result.instructions)


def test_a_view_is_written_where_it_lies() -> None:
    """Every other row of a matrix, passed with its stride, and nothing between them."""
    whole = np.full((6, 8), -1, np.int32)
    view = whole[1::2, 2:]
    kernel("KERNEL(int* y, int stride) { if (ID < 3) y[ID * stride + 1] = ID; }").launch(
        view, view.strides[0] // 4, block=64, orders=1
    )
    assert [*whole[:, 3]] == [-1, 0, -1, 1, -1, 2]
    assert (whole != -1).sum() == 3


COPY = "KERNEL(const int* x, int* y) { if (ID < 7) y[ID] = x[ID] + 1; }"


def test_arguments_that_overlap_share_their_memory() -> None:
    both = np.arange(16, dtype=np.int32)
    kernel(COPY).launch(both[:8], both[4:12], block=64, orders=1)
    assert [*both] == [0, 1, 2, 3, 1, 2, 3, 4, 5, 6, 7, 11, 12, 13, 14, 15]


def test_an_address_keeps_its_place_within_256_bytes() -> None:
    """Compilers specialise kernels on the alignment of what is passed."""
    memory = np.zeros(1024, np.uint8)
    for start in (0, 1, 4, 20):
        view, out = memory[start : start + 64], np.zeros(1, np.uint64)
        kernel("KERNEL(const u8* x, u64* y) { if (ID == 0) y[0] = (u64)x; }").launch(view, out, block=64, orders=1)
        assert out[0] % 256 == view.ctypes.data % 256


def test_what_may_be_passed_as_an_array() -> None:
    octets = bytearray(struct.pack("<8i", *range(8)))
    words = (ctypes.c_int32 * 8)()
    kernel(COPY).launch(octets, words, block=64, orders=1)
    assert [*words] == [1, 2, 3, 4, 5, 6, 7, 0]


class Tensor:
    """What a CPU tensor of torch has, without torch."""

    def __init__(self, array: np.ndarray, device: str = "cpu") -> None:
        self._array, self.shape, self.device = array, array.shape, type("device", (), {"type": device})

    def data_ptr(self) -> int:
        return self._array.ctypes.data

    def element_size(self) -> int:
        return self._array.itemsize

    def stride(self) -> tuple[int, ...]:
        return tuple(step // self._array.itemsize for step in self._array.strides)

    def detach(self) -> Tensor:
        return self

    def numpy(self) -> np.ndarray:
        raise TypeError("Got unsupported ScalarType BFloat16")


def test_a_tensor_is_taken_by_its_pointer() -> None:
    x, y = np.arange(8, dtype=np.int32), np.zeros((2, 8), np.int32)
    kernel(COPY).launch(Tensor(x), Tensor(y[1]), block=64, orders=2)
    assert [*y[1]] == [1, 2, 3, 4, 5, 6, 7, 0]
    assert not y[0].any()
    finding = raised("I107", lambda: kernel(COPY).launch(Tensor(x, "cuda"), Tensor(y), block=64))
    assert "'cuda'" in str(finding)


NUMBERS = """struct P { float a, b, c; }; struct All { float a; double b; int c; u64 d; @T@ f; };
KERNEL(All* y, float a, double b, int c, u64 d, @T@ f) { if (ID == 0) y[0] = {a, b, c, d, f}; }"""


def numbers(kind: str, layout: str, *values: Any) -> tuple[float, ...]:
    y = bytearray(struct.calcsize(layout))
    kernel(NUMBERS.replace("@T@", kind)).launch(y, *values, block=64, orders=1)
    return struct.unpack(layout, y)


def test_numbers_are_packed_as_the_kernel_declares_them() -> None:
    half, three = "<f4xdi4xqe6x", "<f4xdi4xq3f4x"
    assert numbers("f16", half, 0.5, 0.25, -3, 1 << 40, 1.5) == (0.5, 0.25, -3, 1 << 40, 1.5)
    assert numbers("short", half.replace("e", "h"), 0.5, 0.25, -3, 1 << 40, -2)[4] == -2
    typed = np.float32(0.5), np.float64(0.25), np.int32(-3), np.uint64(7), np.float16(1.5)
    assert numbers("f16", half, *typed) == (0.5, 0.25, -3, 7, 1.5)
    assert numbers("P", three, 0.0, 0.0, 0, 0, struct.pack("<3f", 1.0, 2.0, 3.0))[4:] == (1.0, 2.0, 3.0)
    assert numbers("P", three, 0.0, 0.0, 0, 0, np.array([1, 2, 3], np.float32))[4:] == (1.0, 2.0, 3.0)


@pytest.mark.parametrize("value", [1 << 32, "x", b"123", None])
def test_a_value_that_does_not_fit(value: object) -> None:
    raised("I107", lambda: kernel("KERNEL(int* y, int n) { y[0] = n; }").launch(None, value, block=64))


def test_a_number_is_no_pointer() -> None:
    raised("I107", lambda: kernel(COPY).launch(1.5, None, block=64))


@pytest.mark.parametrize(
    "sizes",
    [
        {"grid": 0, "block": 64},
        {"block": (1, 2, 3, 4)},
        {"block": -64},
        {"block": 1024},
        {"grid": (4096, 4096), "block": 64},
    ],
)
def test_sizes_that_no_launch_has(sizes: Any) -> None:
    raised("I107", lambda: kernel(COPY).launch(np.zeros(8), np.zeros(8), **sizes))


def test_the_null_pointer_is_passed_and_not_to_be_used() -> None:
    with pytest.raises(IsaError) as caught:
        kernel(COPY).launch(None, np.zeros(8, np.int32), block=64)
    worded(caught.value)


def test_a_read_only_array_may_be_read() -> None:
    x, y = np.arange(8, dtype=np.int32), np.zeros(8, np.int32)
    x.flags.writeable = False
    kernel(COPY).launch(x, y, block=64, orders=1)
    raised("I107", lambda: kernel(COPY).launch(y, x, block=64, orders=1))
    assert [*x] == [*range(8)]


RACE = """KERNEL(int* y) { SHARED int s[256]; s[ID] = ID; y[ID] = s[255 - ID]; }"""


def test_findings_are_raised_or_returned_with_the_orders_that_showed_them() -> None:
    y = np.zeros(256, np.int32)
    with pytest.raises(IsaError):
        kernel(RACE).launch(y, block=256, orders=4)
    result = kernel(RACE).launch(y, block=256, orders=4, check=False)
    assert not result.ok
    race = next(finding for finding in result.findings if finding.code == "I109")
    assert dict(race.evidence)["orders"] == "all"
    assert result.seen[result.findings.index(race)] == result.orders


def test_outputs_that_depend_on_the_order() -> None:
    """Two workgroups write one word; whoever comes last wins, and without atomics that is an error."""
    y = np.zeros(1, np.int32)
    source = "KERNEL(int* y) { if (ID == 0) y[0] = 1 + __builtin_amdgcn_workgroup_id_x(); }"
    result = kernel(source).launch(y, grid=2, block=64, orders=[LATEST, backwards(1)], check=False)
    (finding,) = [each for each in result.findings if each.code == "I122"]
    assert finding.severity is Severity.ERROR
    assert dict(finding.evidence)["largest difference"] == "1"
    assert dict(finding.evidence)["orders"] == "1 of 2: backwards"
    assert y[0] == 2


def test_progress_is_told_and_an_interrupt_goes_through() -> None:
    told = []
    x, y = np.zeros(8, np.int32), np.zeros(8, np.int32)
    kernel(COPY).launch(x, y, grid=2, block=64, orders=2, progress=lambda done, of: told.append((done, of)))
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]

    def interrupt(done: int, of: int) -> None:
        raise KeyboardInterrupt

    y[:] = 5
    with pytest.raises(KeyboardInterrupt):
        kernel(COPY).launch(x, y, block=64, progress=interrupt)
    assert (y == 5).all()


def test_a_finding_names_the_argument_whose_end_it_is_near() -> None:
    """However the arrays lie in memory."""
    arrays = [np.zeros(size, np.int32) for size in (7, 6)]
    for x, y in (arrays, arrays[::-1]):
        with pytest.raises(IsaError) as caught:
            kernel(COPY).launch(x, y, block=64, orders=1)
        (finding,) = caught.value.findings
        short = 0 if len(x) == 6 else 1
        worded(finding)
        assert mentions(dict(finding.evidence)["where"], short, short)


def test_arrays_that_no_kernel_can_read() -> None:
    assert "object" in str(raised("I107", lambda: kernel(COPY).launch(np.array([None]), None, block=64)))
    raised("I107", lambda: kernel(COPY).launch([1, 2], None, block=64))


def test_an_array_without_elements_is_the_null_pointer() -> None:
    out = np.ones(1, np.uint64)
    source = "KERNEL(const u8* x, u64* y) { if (ID == 0) y[0] = (u64)x; }"
    kernel(source).launch(np.zeros((4, 0)), out, block=64, orders=3)
    assert out[0] == 0
    kernel(source).launch(Tensor(np.zeros((0, 4))), out, block=64, orders=2)
    assert out[0] == 0


def test_the_second_order_may_be_the_one_that_never_ends() -> None:
    """Workgroups after the first wait for it; if the last one comes first, nobody writes what they wait for."""
    flag = np.zeros(1, np.int32)
    source = """KERNEL(int* y) { auto f = (volatile __attribute__((address_space(1))) int*)y;
      if (__builtin_amdgcn_workgroup_id_x() == 0) { if (*f == 0) *f = 1; } else if (*f == 0) for (;;) {} }"""
    result = kernel(source).launch(flag, grid=2, block=64, orders=[LATEST, backwards(1), LATEST], check=False)
    assert result.orders == ("latest", "backwards")
    ended = next(number for number, finding in enumerate(result.findings) if finding.code == "I108")
    assert result.seen[ended] == ("backwards",)
    assert flag[0] == 1


def test_tensors_that_differ_from_order_to_order() -> None:
    """A type that NumPy has no name for is compared by its bytes, a view by its elements."""
    source = "KERNEL(int* y) { if (ID == 0) y[2] = 1 + __builtin_amdgcn_workgroup_id_x(); }"
    tensor, whole = Tensor(np.zeros(4, np.int32)), np.zeros((4, 2), np.int32)
    for out, elements in ((tensor, ("1 of 16", "(8,)")), (whole[:, 0], ("1 of 4", "(1,)"))):
        result = kernel(source).launch(out, grid=2, block=64, orders=[LATEST, backwards(1)], check=False)
        (finding,) = [each for each in result.findings if each.code == "I122"]
        assert mentions(dict(finding.evidence)["elements"], *elements)


def test_a_file_that_is_not_there() -> None:
    raised("T103", lambda: load_kernel("nowhere.hsaco"))


def test_a_race_says_in_how_many_orders_it_did_harm() -> None:
    """Found in all of them; with the later waves first, or everything at once, the values happen to be right."""
    source = """KERNEL(int* y) { SHARED int s[256]; s[ID] = ID; __builtin_amdgcn_s_barrier(); y[ID] = s[255 - ID]; }"""
    y = np.zeros(256, np.int32)
    result = kernel(source).launch(y, block=256, orders=[LATEST, EARLIEST], check=False)
    (race,) = [finding for finding in result.findings if finding.code == "I109"]
    assert mentions(dict(worded(race).evidence)["seen"], "1 of 2")
    assert dict(race.evidence)["orders"] == "all"
    (race,) = kernel(source).launch(y, block=256, orders=[EARLIEST], check=False).findings
    worded(race)
