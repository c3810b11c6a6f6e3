"""What a launch is given to work on: takes arrays and tensors, gives the bytes they lie in, each region once.

A kernel sees memory, not arrays: two arguments that overlap are one region, a view reaches from its first byte to its
last, and an address keeps its place within 256 bytes, since compilers specialise kernels on it.  NumPy arrays of any
dtype, whatever has the buffer or array protocol, and CPU tensors of torch, which is never imported, are all taken.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rota.errors import Finding, IsaError

if TYPE_CHECKING:
    from numpy.typing import NDArray

SKEW = 256
"""Addresses on the device and on the host are equal modulo this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSpan:
    """One array: where its first element and its bytes lie, whether they may be written, and how to show them."""

    start: int  # address of the first element
    low: int
    high: int
    writeable: bool
    owner: Any  # keeps the memory alive
    numbers: NDArray[Any] | None  # the array, if NumPy has a name for its type


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """Memory that one array lies in, or several that overlap."""

    low: int
    octets: NDArray[np.uint8]
    writeable: bool


def is_array(value: object) -> bool:
    """Is it passed by address?  Numbers, NumPy scalars and plain bytes are not."""
    if isinstance(value, bool | int | float | complex | bytes | str | np.generic) or value is None:
        return False
    return (
        isinstance(value, np.ndarray) or _is_tensor(value) or hasattr(value, "__array_interface__") or _is_buffer(value)
    )


def span_of(value: Any, name: str) -> HostSpan:  # noqa: ANN401  # an array of anyone's
    """Where an array lies."""
    if _is_tensor(value):
        return _tensor_span(value, name)
    array = value if isinstance(value, np.ndarray) else np.asarray(value)
    if array.dtype.hasobject:
        raise _refused(name, f"an array of {array.dtype}, which no kernel can read")
    low, high = np.lib.array_utils.byte_bounds(array) if array.size else (array.ctypes.data, array.ctypes.data)
    numbers = array if array.dtype.kind in "biufc" or array.dtype.name.startswith(("bfloat", "float")) else None
    return HostSpan(
        start=array.ctypes.data, low=low, high=high, writeable=array.flags.writeable, owner=array, numbers=numbers
    )


def regions_of(spans: Sequence[HostSpan]) -> tuple[Region, ...]:
    """Spans that overlap, joined; in the order in which they are given."""
    found: list[tuple[int, int, bool]] = []
    for span in sorted(spans, key=lambda span: (span.low, span.high)):
        if span.low == span.high:
            continue
        if found and span.low < found[-1][1]:
            low, high, writeable = found[-1]
            found[-1] = low, max(high, span.high), writeable and span.writeable
        else:
            found.append((span.low, span.high, span.writeable))
    first = {low: min(number for number, span in enumerate(spans) if low <= span.low < high) for low, high, _ in found}
    found.sort(key=lambda each: first[each[0]])
    return tuple(Region(low=low, octets=_octets(low, high), writeable=free) for low, high, free in found)


def place_of(span: HostSpan, regions: Sequence[Region]) -> tuple[int, int] | None:
    """The region that a span's first element lies in and how far inside; None for an array without elements."""
    if span.low == span.high:
        return None
    for number, region in enumerate(regions):
        if region.low <= span.start < region.low + len(region.octets):
            return number, span.start - region.low
    raise AssertionError("a span lies in one of the regions that were made of it")


def _octets(low: int, high: int) -> NDArray[np.uint8]:
    """The memory itself; whoever owns it is kept by the spans."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * (high - low)).from_address(low))


def _is_tensor(value: object) -> bool:
    return all(hasattr(value, name) for name in ("data_ptr", "element_size", "stride", "shape", "device"))


def _is_buffer(value: object) -> bool:
    try:
        memoryview(value)  # type: ignore[arg-type]  # asked, not known
    except TypeError:
        return False
    return True


def _tensor_span(tensor: Any, name: str) -> HostSpan:  # noqa: ANN401  # a tensor of torch, which isn't imported
    where = getattr(tensor.device, "type", str(tensor.device))
    if where != "cpu":
        raise _refused(name, f"a tensor on device {where!r}; kernels run on the CPU here")
    start, size = tensor.data_ptr(), tensor.element_size()
    reach = sum((length - 1) * step for length, step in zip(tensor.shape, tensor.stride(), strict=True))
    high = start + (reach + 1) * size if 0 not in tensor.shape else start  # strides of tensors are never negative
    return HostSpan(start=start, low=start, high=high, writeable=True, owner=tensor, numbers=_as_numbers(tensor))


def _as_numbers(tensor: Any) -> NDArray[Any] | None:  # noqa: ANN401  # see above
    try:
        array: NDArray[Any] = tensor.detach().numpy()
    except (AttributeError, TypeError, RuntimeError):  # a type that NumPy has no name for, such as bfloat16
        return None
    return array


def _refused(name: str, why: str) -> IsaError:
    return IsaError(
        Finding(
            code="I107",
            message=f"argument {name} can't be passed to a kernel",
            evidence=(("given", why),),
            fixes=("pass a NumPy array, a CPU tensor, or anything with the buffer protocol",),
        )
    )
