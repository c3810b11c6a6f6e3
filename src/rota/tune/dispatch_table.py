"""The dispatch table in formats that are read today: takes a `TunedLibrary`, gives files by name.

rota's own CSV; AITER's tuned CSV, in which a predicted time never stands under `us`; vLLM's JSON for Triton's
block-scaled fp8 GEMM, which takes the tile and the waves and nothing of the schedule.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rota.targets.registry import device_named
from rota.tune.shapes import ProblemShape
from rota.tune.tune_library import DeviceTable, TunedLibrary
from rota.tune.winners import MEASURED, Configuration

COLUMNS = (
    "device",
    "M",
    "N",
    "K",
    "type",
    "out",
    "kernel",
    "tile",
    "split_k",
    "us",
    "predicted_us",
    "basis",
    "near",
    "next",
)
"""Of rota's own table; `us` is measured or empty; `near` counts those that the model can't tell from the winner."""
_AITER = (
    "gfx,cu_num,M,N,K,bias,dtype,outdtype,scaleAB,bpreshuffle,libtype,solidx,splitK,us,kernelName,err_ratio,tflops,bw"
)
_TORCH = {"bf16": "torch.bfloat16", "fp16": "torch.float16", "fp8": "torch.float8_e4m3fn", "fp32": "torch.float32"}
_BLOCK = 128  # columns and depth that share a scale in vLLM's block-scaled GEMM


def table_files(library: TunedLibrary) -> dict[str, str]:
    """All of them; the same library gives the same files, byte for byte."""
    found = {"dispatch.csv": _text(COLUMNS, (row for table in library.tables for row in _own(table)))}
    untuned = [(table.device, *shape, why) for table in library.tables for shape, why in table.untuned]
    if untuned:
        found["untuned.csv"] = _text(("device", "M", "N", "K", "type", "out", "why"), untuned)
    header = (*_AITER.split(","), "predicted_us")
    found["aiter_tuned_gemm.csv"] = _text(header, (row for table in library.tables for row in _aiter(table)))
    for table in library.tables:
        if table.ranking.element == "fp8":
            found |= dict(_vllm(table))
    return found


def _text(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue()


def _times(choice: dict[str, Any]) -> tuple[str, str]:
    """Under `us` what was measured, and nothing else."""
    text = f"{choice['us']:.3f}"
    return (text, "") if choice["basis"] == MEASURED else ("", text)


def by_kernel(table: DeviceTable) -> dict[tuple[str, int], Configuration]:
    """The configurations of a table by kernel and split."""
    return {(each.kernel, each.split_k): each for each in table.ranking.configurations}


def _own(table: DeviceTable) -> Iterator[Sequence[object]]:
    known = by_kernel(table)
    for shape, choice in table.choices.items():
        point = known[choice["kernel"], choice["split_k"]].row.point
        following = " ".join(f"{kernel}/{split}" for kernel, split in choice["next"])
        yield (
            *(table.device, *shape[:3], point.element, shape.result, choice["kernel"], "x".join(map(str, point.tile))),
            *(choice["split_k"], *_times(choice), choice["basis"], choice["near"], following),
        )


def _aiter(table: DeviceTable) -> Iterator[Sequence[object]]:
    device = device_named(table.device)
    numbers = {
        kernel: number for number, kernel in enumerate(sorted({each.kernel for each in by_kernel(table).values()}))
    }
    for shape, choice in table.choices.items():
        measured, predicted = _times(choice)
        tflops = f"{2 * shape.m * shape.n * shape.k / choice['us'] / 1e6:.2f}" if measured else ""
        yield (
            *(device.arch, device.timing.compute_units.value, *shape[:3], "False", _TORCH[table.ranking.element]),
            *(_TORCH[shape.result], "False", "False", "rota", numbers[choice["kernel"]], choice["split_k"], measured),
            *(choice["kernel"], "", tflops, "", predicted),
        )


def _vllm(table: DeviceTable) -> Iterator[tuple[str, str]]:
    """A file for each N and K, keyed by M; splits of K are not what that kernel does, so unsplit winners alone."""
    known, files = by_kernel(table), dict[tuple[int, int], dict[int, dict[str, int]]]()
    for shape, choice in table.choices.items():
        point = known[choice["kernel"], choice["split_k"]].row.point
        if choice["split_k"] == 1 and point.tile[2] <= _BLOCK:
            files.setdefault((shape.n, shape.k), {})[shape.m] = {
                "BLOCK_SIZE_M": point.tile[0],
                "BLOCK_SIZE_N": point.tile[1],
                "BLOCK_SIZE_K": point.tile[2],
                "GROUP_SIZE_M": choice["swizzle"][1],
                "num_warps": point.waves,
                "matrix_instr_nonkdim": point.mma,
                "kpack": 1,
            }
    for (n, k), by_m in files.items():
        name = (
            f"N={n},K={k},device_name=AMD_Instinct_{table.device},dtype=fp8_w8a8,block_shape=[{_BLOCK},{_BLOCK}].json"
        )
        yield f"vllm/{name}", json.dumps({str(m): by_m[m] for m in sorted(by_m)}, indent=4) + "\n"


def coverage(table: DeviceTable) -> tuple[int, int]:
    """Shapes with a kernel, and all."""
    return len(table.choices), len(table.choices) + len(table.untuned)


def shapes_in(table: DeviceTable) -> list[ProblemShape]:
    """The shapes that have a kernel, in the order of the dispatch header: by N, K and M."""
    return sorted(table.choices, key=lambda shape: (shape.n, shape.k, shape.m, shape.result))
