"""The space to search, read from TOML or the default one, and the shapes to tune for.

Every list is a dimension. Arithmetic drops what can't be a kernel before any solver runs: tiles that matrix
instructions don't divide, LDS, registers, widths. Each dropped point keeps the code of the finding that says why.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

from rota.check import is_int
from rota.errors import RotaError, TuneError, did_you_mean
from rota.predict.predict_problem import GemmProblem
from rota.program.kinds import Home
from rota.targets.device import problem_facts_of
from rota.targets.registry import DEFAULT_NAME, STANDS_FOR, device_named
from rota.tune.point import LoopPoint
from rota.values.buffer_depth import check_registers
from rota.verify.machine_limits import find_impossible

# Shapes to tune for. The first line says which format a file has; what can't be read ends in S103, nothing is left
# out silently.

TOKENS = tuple(2**power for power in range(15))
"""Rows of A that a model's layers are asked for, where nobody says which."""
_TYPES = {"bfloat16": "bf16", "bf16": "bf16", "float16": "fp16", "fp16": "fp16", "half": "fp16", "float32": "fp32"}
_EIGHT_BITS = "float8"


class ProblemShape(NamedTuple):
    """A problem without a split: sides, and types where the file states them."""

    m: int
    n: int
    k: int
    element: str = ""
    result: str = "bf16"

    def __str__(self) -> str:
        return f"{self.m}x{self.n}x{self.k}"


def read_shapes(path: Path, tokens: Sequence[int] = TOKENS, parallel: int = 1) -> tuple[ProblemShape, ...]:
    """The shapes of a file, each once, in their order.

    For a model's config `tokens` are the rows of A, and its layers are dealt to `parallel` devices.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _refuse_shapes(path.name, 0, f"it can't be read: {error}") from error
    found = _of_model(path.name, text, tokens, parallel) if text.lstrip()[:1] == "{" else _of_rows(path.name, text)
    shapes = tuple(dict.fromkeys(found))
    if not shapes:
        raise _refuse_shapes(path.name, 1, "it holds no shapes")
    return shapes


def _of_rows(name: str, text: str) -> Iterator[ProblemShape]:
    rows = list(csv.reader(io.StringIO(text)))
    header = [word.strip() for word in rows[0]] if rows else []
    sides = {word.lower(): word for word in header if word.lower() in ("m", "n", "k")}
    if len(sides) < 3:
        why = f"its first line is {','.join(header)!r:.60}; M, N and K have to be among its columns"
        fix = "M,N,K as the first line; AITER's untuned CSV, and a model's config.json are read, too"
        raise _refuse_shapes(name, 1, why, fix)
    if text and not text.endswith("\n") and len(rows[-1]) < len(header):
        raise _refuse_shapes(name, len(rows), "it ends inside a line, so its last number may be cut", "export it again")
    for number, row in enumerate(rows[1:], 2):
        if not any(part.strip() for part in row):
            continue
        if len(row) != len(header):
            raise _refuse_shapes(name, number, f"it has {len(row)} fields, the first line {len(header)}")
        said = dict(zip(header, (part.strip() for part in row), strict=True))
        m, n, k = (_side(name, number, each.upper(), said[sides[each]]) for each in ("m", "n", "k"))
        element = next((said[word] for word in ("type", "dtype", "q_dtype_w") if said.get(word)), "")
        result = next((said[word] for word in ("out", "outdtype") if said.get(word)), "bf16")
        yield _shape(name, number, (m, n, k), _type(element), _type(result) or "bf16")


def _side(name: str, line: int, word: str, text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise _refuse_shapes(name, line, f"{word} is {text!r:.40}; expected a whole number above 0")
    return int(text)


def _type(word: str) -> str:
    """As rota spells it; one that rota doesn't know stays as it is, and is matched by no kernel."""
    plain = word.removeprefix("torch.").lower()
    return "fp8" if plain.startswith((_EIGHT_BITS, "fp8")) else _TYPES.get(plain, plain)


def _of_model(name: str, text: str, tokens: Sequence[int], parallel: int) -> Iterator[ProblemShape]:
    """Attention and feed-forward of a decoder layer: what projects, what comes back, and the vocabulary."""
    try:
        data = json.loads(text)
    except ValueError as error:
        raise _refuse_shapes(name, 0, f"it is no JSON: {error}") from error
    hidden, heads = (_count(name, data, word) for word in ("hidden_size", "num_attention_heads"))
    inner = _count(name, data, "intermediate_size")
    groups = data.get("num_key_value_heads") or heads
    head = data.get("head_dim") or hidden // heads
    layers = [
        ((heads + 2 * groups) * head, hidden, True),
        (hidden, heads * head, False),
        (2 * inner, hidden, True),
        (hidden, inner, False),
    ]
    element = _type(str(data.get("torch_dtype") or data.get("dtype") or ""))
    for m in tokens:
        for n, k, columns in layers:
            sides = (n // parallel, k) if columns else (n, k // parallel)
            if (n if columns else k) % parallel:
                raise _refuse_shapes(name, 0, f"{n if columns else k} can't be dealt to {parallel} devices")
            yield _shape(name, 0, (m, *sides), element, "bf16")


def _count(name: str, data: Mapping[str, Any], word: str) -> int:
    value = data.get(word)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        why = f"{word} is {value!r:.40}; a model's config says it as a whole number"
        raise _refuse_shapes(name, 0, why, "a CSV of M, N and K is read, too")
    return value


def _shape(name: str, line: int, sides: Iterable[int], element: str, result: str) -> ProblemShape:
    m, n, k = sides
    try:
        GemmProblem(m=m, n=n, k=k, result=result)
    except RotaError as error:
        raise _refuse_shapes(name, line, error.findings[0].message) from error
    return ProblemShape(m, n, k, element, result)


def _refuse_shapes(name: str, line: int, why: str, *fixes: str) -> TuneError:
    where = f"{name}:{line}" if line else name
    return TuneError.of("S103", f"{where}: {why}", evidence=(("file", name),), fixes=fixes)


_MOST = 1_000_000
_AS_THEY_ARE = ("tile", "waves", "mma", "depth", "stagger", "slack", "seed", "make")
_OF_LOOPS = ("device", "type", "barriers", "grain", *_AS_THEY_ARE)
_BARRIERS = {"slack": False, "fewest": True}
_GRAINS = {"instructions": True, "tiles": False}


class Swizzle(NamedTuple):
    """The order of workgroups: dies that each get a run of tiles, and rows of tiles that are taken together."""

    xcds: int
    group: int

    def __str__(self) -> str:
        return f"{self.xcds}x{self.group}"


class Pruned(NamedTuple):
    name: str
    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneSpace:
    """Each field is a dimension: all its values are combined with all others.

    `depth` and `slack` may hold None, which leaves them to rota; `barriers` are words, slack or fewest; `grain` is
    instructions or tiles; `swizzle` the order of workgroups.  `seed`, `effort` and `make` are as of a `LoopPoint`.
    """

    device: tuple[str, ...] = (DEFAULT_NAME,)
    type: tuple[str, ...] = ("bf16",)
    tile: tuple[tuple[int, int, int], ...] = ((256, 256, 64),)
    waves: tuple[int, ...] = (8,)
    mma: tuple[int, ...] = (16,)
    depth: tuple[int | None, ...] = (None,)
    stagger: tuple[bool, ...] = (False,)
    barriers: tuple[str, ...] = ("slack",)
    slack: tuple[int | None, ...] = (None,)
    grain: tuple[str, ...] = ("instructions",)
    split_k: tuple[int, ...] = (1,)
    swizzle: tuple[Swizzle, ...] = (Swizzle(8, 4),)
    seed: tuple[int, ...] = (0,)
    make: tuple[str, ...] = ("",)
    effort: float = 60.0

    def points(self) -> Iterator[LoopPoint]:
        dimensions = {name: getattr(self, name) for name in _OF_LOOPS}
        for values in itertools.product(*dimensions.values()):
            each: dict[str, Any] = dict(zip(dimensions, values, strict=True))
            yield LoopPoint(
                device=device_named(each["device"]).name,
                element=each["type"],
                fewest_barriers=_BARRIERS[each["barriers"]],
                instructions=_GRAINS[each["grain"]],
                effort=self.effort,
                **{name: each[name] for name in _AS_THEY_ARE},
            )

    @property
    def variants(self) -> int:
        return len(self.split_k) * len(self.swizzle)


class Sifted(NamedTuple):
    points: tuple[LoopPoint, ...]
    pruned: tuple[Pruned, ...]


def sift(space: TuneSpace) -> Sifted:
    """The space's loops; S102 if none is left."""
    points: dict[str, LoopPoint] = {}
    pruned: list[Pruned] = []
    for point in space.points():
        try:
            check_point(point)
        except RotaError as error:
            worst = error.findings[0]
            pruned.append(Pruned(point.name, worst.code, worst.message))
        else:
            points[point.name] = point
    if not points:
        raise TuneError.of(
            "S102",
            f"none of the {len(pruned)} loops of the space can be a kernel",
            evidence=tuple((each.name, f"{each.code} {each.message}") for each in pruned[:5]),
            fixes=("smaller tiles, or another number of waves",),
        )
    return Sifted(tuple(points.values()), tuple(pruned))


def check_point(point: LoopPoint) -> None:
    """Refuse what can't be a kernel, by arithmetic alone."""
    loop, device = point.loop(), point.target
    problem_facts_of(device)
    found = next(find_impossible(loop, device), None)
    if found is not None:
        raise TuneError(found)
    check_registers(loop, device)
    one = sum(value.size for value in loop.values if value.home is Home.LDS)
    copies = point.depth or 1
    if copies * one > device.lds_bytes.value:
        raise TuneError.of(
            "L103",
            f"{copies} copies of the tiles take {copies * one:,} bytes; {device.name} has {device.lds_bytes.value:,}",
            evidence=(("bytes", copies * one), ("limit", device.lds_bytes.value)),
            fixes=("a smaller tile, or fewer copies",),
        )


def read_space(path: Path) -> TuneSpace:
    """A space from a TOML file; S101 where it is malformed."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise _refuse_space(path.name, f"it can't be read: {error}") from error
    return space_of(data, path.name)


def space_of(data: Mapping[str, Any], name: str = "the space") -> TuneSpace:
    """A space from a table; a value that is no list is a list of one."""
    known = [each.name for each in fields(TuneSpace)]
    for word in data:
        if word not in known:
            raise _refuse_space(name, f"it has no dimension {word!r:.40}", *did_you_mean(word, known))
    given: dict[str, Any] = {
        word: value if word == "effort" else tuple(_values(name, word, value)) for word, value in data.items()
    }
    found = TuneSpace(**given)
    loops = math.prod(len(getattr(found, word)) for word in _OF_LOOPS)
    if loops * found.variants > _MOST:
        raise _refuse_space(name, f"it has {loops * found.variants:,} configurations; at most {_MOST:,} are searched")
    try:
        next(found.points())
        for device in found.device:
            device_named(device)
    except RotaError as error:
        worst = error.findings[0]
        raise _refuse_space(name, worst.message, *worst.fixes) from error
    return found


def _values(name: str, word: str, value: object) -> list[object]:
    values = value if isinstance(value, list) else [value]
    if not values:
        raise _refuse_space(name, f"{word} is an empty list: nothing would be searched")
    found = [_value(name, word, each) for each in values]
    if len(set(found)) < len(found):
        raise _refuse_space(name, f"{word} lists a value twice")
    return found


def _value(name: str, word: str, value: object) -> object:
    if word == "tile":
        return tuple(_numbers(name, word, value, 3))
    if word == "swizzle":
        return Swizzle(*_numbers(name, word, value, 2))
    if word in ("depth", "slack") and value == "auto":
        return None
    words: Sequence[str] = {"barriers": [*_BARRIERS], "grain": [*_GRAINS]}.get(word, ())
    if words and value not in words:
        raise _refuse_space(name, f"{word} is {value!r:.40}; expected {' or '.join(words)}")
    kinds = {"device": str, "type": str, "make": str, "barriers": str, "grain": str, "stagger": bool}
    if not (isinstance(value, kinds[word]) if word in kinds else is_int(value)):
        wanted = {str: "a word", bool: "true or false"}.get(kinds.get(word, int), "a whole number")
        raise _refuse_space(name, f"{word} is {value!r:.40}; expected {wanted}")
    if word == "split_k" and isinstance(value, int) and value < 1:
        raise _refuse_space(name, f"split_k is {value}; expected a whole number from 1 on")
    return value


def _numbers(name: str, word: str, value: object, count: int) -> Iterator[int]:
    parts = value.lower().split("x") if isinstance(value, str) else []
    if len(parts) != count or not all(part.isdecimal() and int(part) > 0 for part in parts):
        example = {"tile": "256x256x64", "swizzle": "8x4"}[word]
        raise _refuse_space(name, f'{word} is {value!r:.40}; expected as "{example}"')
    yield from map(int, parts)


def _refuse_space(name: str, why: str, *fixes: str) -> TuneError:
    return TuneError.of("S101", f"{name}: {why}", fixes=fixes)


_DEFAULT_SIDES = ("256x256", "256x128", "128x256", "128x128", "128x64", "64x128", "64x64", "32x64", "64x32")
_DEFAULT_DEPTHS = {"bf16": 64, "fp16": 64, "fp8": 128}
"""K of a tile: 128 bytes of it."""


def default_space(shapes: Iterable[ProblemShape], devices: Sequence[str] = ()) -> TuneSpace:
    """What is searched where nobody says: nine tiles with four waves and with eight, and K split in 1, 2, 4 and 8.

    The types are those of the shapes, and bf16 for shapes that state none. A loop takes one to three seconds.
    """
    named = {shape.element or "bf16" for shape in shapes}
    types = [element for element in _DEFAULT_DEPTHS if element in named] or ["bf16"]
    depths = dict.fromkeys(_DEFAULT_DEPTHS[element] for element in types)
    return space_of(
        {
            "device": list(devices) or [DEFAULT_NAME],
            "type": types,
            "tile": [f"{sides}x{depth}" for depth in depths for sides in _DEFAULT_SIDES],
            "waves": [4, 8],
            "split_k": [1, 2, 4, 8],
            "effort": 2.0,
        },
        "the default space",
    )


_DEVICES = ", ".join(f'"{name}"' for name in STANDS_FOR.values())

EXAMPLE = f"""\
# Every list is a dimension; all values are combined.  A single value needs no brackets.
device = [{_DEVICES}]
type = "bf16"                               # bf16, fp16 or fp8
tile = ["256x256x64", "256x128x64", "128x128x64", "64x64x64"]
waves = [4, 8]
mma = [16, 32]                              # the side of the matrix instruction
depth = "auto"                              # most copies of a tile in LDS, or auto
stagger = false                             # two groups of waves that take turns
barriers = "slack"                          # slack for loads, or the fewest
slack = "auto"                              # slots that a load may be late, or auto
grain = "instructions"                      # every instruction is placed; tiles is coarser and quicker
split_k = [1, 2, 4, 8]
swizzle = ["8x4", "8x8"]                    # dies that get runs of tiles, and rows of tiles taken together
seed = 0
effort = 60.0                               # of one search, in seconds of work
"""
"""What `rota tune --example` prints; a test reads it."""
