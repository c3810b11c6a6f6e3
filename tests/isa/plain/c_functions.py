"""Small C functions at random: takes a seed, gives sources that compile for a GPU and for this machine alike.

Nothing in them is left open by C: shifts stay in range, nothing signed overflows, divisors are never
zero, and floats become integers only where they fit.  Nor do they hold what LLVM compiles with another zero than C
says: `x < y ? x : y` of floats becomes a minimum, a product that is rounded twice an addition of +0, and to the result
of a copysign +0 isn't added.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

TYPES = {
    "i32": ("int", np.int32), "u32": ("unsigned", np.uint32), "i64": ("long", np.int64),
    "u64": ("unsigned long", np.uint64),
    "i16": ("short", np.int16), "u16": ("unsigned short", np.uint16), "i8": ("signed char", np.int8),
    "u8": ("unsigned char", np.uint8), "f32": ("float", np.float32), "f64": ("double", np.float64),
    "f16": ("_Float16", np.float16),
}  # fmt: skip
_BITS = {kind: int(kind[1:]) for kind in TYPES}


@dataclass(frozen=True, slots=True)
class CFunction:
    """A function of three arguments: its parameters' types, its result's, and its body."""

    name: str
    sources: tuple[str, str, str]
    result: str
    body: str

    def device(self) -> str:
        a, b, c = (TYPES[kind][0] for kind in self.sources)
        result = TYPES[self.result][0]
        return (
            f"static __attribute__((device)) {self._definition()}"
            f'extern "C" __attribute__((global)) __attribute__((amdgpu_flat_work_group_size(64, 64))) void {self.name}'
            f"(const {a}* a, const {b}* b, const {c}* c, {result}* o) {{"
            f" int i = __builtin_amdgcn_workitem_id_x(); {a} x = a[i]; {b} y = b[i]; {c} z = c[i]; {self._held()}"
            f" o[i] = {self.name}_f(x, y, z); }}\n"
        )

    def _held(self) -> str:
        """Keeps every argument until it is loaded: the compiler would load another into a register that isn't used."""
        out = ""
        for name, kind in zip("xyz", self.sources, strict=True):
            if kind[0] != "f" and _BITS[kind] < 32:
                out += f'int {name}_ = {name}; asm volatile("" : "+v"({name}_)); {name} = {name}_; '
            else:
                out += f'asm volatile("" : "+v"({name})); '
        return out

    def host(self) -> str:
        a, b, c = (TYPES[kind][0] for kind in self.sources)
        return (
            f"static {self._definition()}void {self.name}"
            f"(const {a}* a, const {b}* b, const {c}* c, {TYPES[self.result][0]}* o) {{"
            f" for (int i = 0; i < 64; i++) o[i] = {self.name}_f(a[i], b[i], c[i]); }}\n"
        )

    def _definition(self) -> str:
        a, b, c = (TYPES[kind][0] for kind in self.sources)
        return f"{TYPES[self.result][0]} {self.name}_f({a} a, {b} b, {c} c) {{ {self.body} }}\n"


class _Writer:
    def __init__(self, random: Random, sources: tuple[str, str, str]) -> None:
        self.random = random
        self.known = dict(zip("abc", sources, strict=True))

    def expression(self, kind: str, depth: int) -> str:
        """An expression of a type, in parentheses."""
        choice = self.random.random()
        if depth == 0 or choice < 0.15:
            return self._leaf(kind)
        if choice < 0.3:
            other = self.random.choice(list(TYPES))
            return self._converted(other, kind, self.expression(other, depth - 1))
        if choice < 0.42:
            asked = self.random.choice([each for each in TYPES if kind[0] != "f" or each[0] != "f"])
            order = self.random.choice(("<", "<=", "==", "!=", ">", ">="))
            left, right = self.expression(asked, depth - 1), self.expression(asked, depth - 1)
            return f"({left} {order} {right} ? {self.expression(kind, depth - 1)} : {self.expression(kind, depth - 1)})"
        return self._float(kind, depth) if kind[0] == "f" else self._integer(kind, depth)

    def _leaf(self, kind: str) -> str:
        names = [name for name, each in self.known.items() if each == kind]
        if names and self.random.random() < 0.8:
            return self.random.choice(names)
        if self.random.random() < 0.6:
            name = self.random.choice(list(self.known))
            return self._converted(self.known[name], kind, name)
        word = TYPES[kind][0]
        if kind[0] == "f":
            return f"(({word}){self.random.choice(('0.5', '1.0', '-2.0', '3.25', '0.1', '-100.0', '0.0'))})"
        return f"(({word}){self.random.choice((0, 1, -1, 7, 31, 100, 255, 65535, 12345678, -5))})"

    def _converted(self, of: str, to: str, text: str) -> str:
        """A conversion; a float goes to an integer only inside its range."""
        if of[0] == "f" and to[0] != "f":
            most = min(2.0 ** (_BITS[to] - (to[0] == "i")) / 2, 60000.0 if of == "f16" else 2.0**62)
            low = -most if to[0] == "i" else 0.0
            word = TYPES[of][0]
            return f"({{ {word} t = {text}; t > ({word}){low} && t < ({word}){most} ? ({TYPES[to][0]})t : 0; }})"
        return f"(({TYPES[to][0]}){text})"

    def _integer(self, kind: str, depth: int) -> str:
        word, bits = TYPES[kind][0], _BITS[kind]
        u = "(unsigned long)" if bits == 64 else "(unsigned)"  # what is signed may not overflow
        a, b = self.expression(kind, depth - 1), self.expression(kind, depth - 1)
        wide = bits >= 32
        forms = [
            f"({word})({u}{a} + {u}{b})", f"({word})({u}{a} - {u}{b})", f"({word})({u}{a} * {u}{b})",
            f"({word})({a} & {b})", f"({word})({a} | {b})", f"({word})({a} ^ {b})", f"({word})~{a}",
            f"({word})(0 - {u}{a})",
            f"({word})({u}{a} << ({b} & {bits - 1}))", f"({word})({a} >> ({b} & {bits - 1}))",
            f"({word})({a} / (({b} & 0x7f) | 1))", f"({word})({a} % (({b} & 0x7f) | 1))",
            f"({a} < {b} ? {a} : {b})", f"({a} > {b} ? {a} : {b})",
            f"({word})({a} & {self._leaf(kind)} | {b})", f"({word})(({u}{a} << 3) + {u}{b})",
            f"({word})({u}{a} * {u}{b} + {u}{self._leaf(kind)})",
        ]  # fmt: skip
        if wide:
            suffix = "" if bits == 32 else "l"
            unsigned = "unsigned" if bits == 32 else "unsigned long"
            forms += [
                f"({word})__builtin_popcount{suffix}({a})", f"({word})__builtin_bitreverse{bits}({a})",
                f"({word})__builtin_bswap{bits}({a})", f"({word})__builtin_clz{suffix}(({unsigned}){a} | 1)",
                f"({word})__builtin_ctz{suffix}(({unsigned}){a} | ({unsigned})1 << {bits - 1})",
                f"({word})__builtin_rotateleft{bits}({a}, {b})",
                f"({word})(({unsigned}){a} / (({unsigned}){b} | 1))",
                f"({word})(({unsigned}){a} % (({unsigned}){b} | 1))",
                f"({word})((unsigned long)(unsigned){a} * (unsigned){b} >> 32)",
                f"({word})((long)(int){a} * (int){b} >> 16)",
                f"({word})(({a} >> {self.random.randrange(1, 20)}) & 0x{self.random.choice(('1f', 'ff', '3ff')) })",
                f"({word})__builtin_elementwise_sub_sat({a}, {b})", f"({word})__builtin_elementwise_add_sat({a}, {b})",
            ]  # fmt: skip
        return f"({self.random.choice(forms)})"

    def _float(self, kind: str, depth: int) -> str:
        word = TYPES[kind][0]
        a, b = self.expression(kind, depth - 1), self.expression(kind, depth - 1)
        forms = [f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"-{a}", f"({a} / {b})"]
        if kind != "f16":
            end = "f" if kind == "f32" else ""
            c = self.expression(kind, depth - 1)
            forms += [
                f"__builtin_fma{end}({a}, {b}, {c})", f"__builtin_fabs{end}({a})", f"__builtin_floor{end}({a})",
                f"__builtin_ceil{end}({a})", f"__builtin_trunc{end}({a})", f"__builtin_rint{end}({a})",
                f"__builtin_sqrt{end}({a})",
                f"__builtin_fmin{end}({a}, ({word})2.5)", f"__builtin_fmax{end}({a}, ({word})-1.5)",
                f"__builtin_fma{end}({a}, {b}, {c})", f"({a} / {b})",
                f"__builtin_fmin{end}(__builtin_fmax{end}({a}, ({word})-3.0), ({word})5.0)",
            ]  # fmt: skip
        else:
            forms += [f"({word})__builtin_fmaf((float){a}, (float){b}, 1.0f)"]
        return f"(({word}){self.random.choice(forms)})"


def drawn_function(random: Random, name: str) -> CFunction:
    """One function: an expression, with a branch or a loop before it now and then."""
    kinds = list(TYPES)
    first, second, third = (random.choice(kinds) for _ in range(3))
    sources, result = (first, second, third), random.choice(kinds)
    writer = _Writer(random, sources)
    body = ""
    if random.random() < 0.5:
        kind = random.choice(kinds)
        body += f"{TYPES[kind][0]} x = {writer.expression(kind, 2)}; "
        writer.known["x"] = kind
        if random.random() < 0.4:
            asked = random.choice(kinds)
            condition = f"{writer.expression(asked, 1)} < {writer.expression(asked, 1)}"
            body += f"if ({condition}) x = {writer.expression(kind, 2)}; "
        elif random.random() < 0.4:
            count = writer.expression("u32", 1)
            body += f"for (unsigned k = 0; k < ({count} & 3); k++) x = {writer.expression(kind, 1)}; "
    body += f"return {writer.expression(result, 3)};"
    return CFunction(name, sources, result, body)


def drawn_array(random: Random, kind: str) -> np.ndarray[Any, Any]:
    """64 values of a type: edges, small numbers, anything."""
    dtype: np.dtype[Any] = np.dtype(TYPES[kind][1])
    bits = [random.getrandbits(_BITS[kind]) for _ in range(64)]
    values = np.array(bits, dtype=f"u{dtype.itemsize}").view(dtype).copy()
    for place in range(0, 64, 2):
        if kind[0] == "f":
            values[place] = random.choice((random.uniform(-4, 4), random.uniform(-1e4, 1e4), random.randrange(-9, 9)))
        else:
            info = np.iinfo(dtype)
            values[place] = random.choice((0, 1, info.max, info.min, random.randrange(100), info.max // 2))
    if kind[0] == "f":
        special = (0.0, -0.0, np.inf, -np.inf, np.nan, float(np.finfo(dtype).max), float(np.finfo(dtype).tiny), 1.0)
        values[1:17:2] = np.array(special, dtype)
        bad = np.isnan(values) & (np.arange(64) > 20)  # quiet ones are enough
        values[bad] = dtype.type(1.5)
    return values
