"""Shapes to be tuned for: takes a CSV of M, N and K, AITER's untuned CSV or a model's config, gives `ProblemShape`s.

Which of them a file is, is seen from its first line.  What can't be read ends in S103; nothing is left out silently.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rota.errors import Finding, RotaError, TuneError
from rota.predict.gemm_problem import GemmProblem

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
        raise _malformed(path.name, 0, f"it can't be read: {error}") from error
    found = _of_model(path.name, text, tokens, parallel) if text.lstrip()[:1] == "{" else _of_rows(path.name, text)
    shapes = tuple(dict.fromkeys(found))
    if not shapes:
        raise _malformed(path.name, 1, "it holds no shapes")
    return shapes


def _of_rows(name: str, text: str) -> Iterator[ProblemShape]:
    rows = list(csv.reader(io.StringIO(text)))
    header = [word.strip() for word in rows[0]] if rows else []
    sides = {word.lower(): word for word in header if word.lower() in ("m", "n", "k")}
    if len(sides) < 3:
        raise _malformed(
            name,
            1,
            f"its first line is {','.join(header)!r:.60}; M, N and K have to be among its columns",
            "M,N,K as the first line; AITER's untuned CSV, and a model's config.json are read, too",
        )
    if text and not text.endswith("\n") and len(rows[-1]) < len(header):
        raise _malformed(name, len(rows), "it ends inside a line, so its last number may be cut", "export it again")
    for number, row in enumerate(rows[1:], 2):
        if not any(part.strip() for part in row):
            continue
        if len(row) != len(header):
            raise _malformed(name, number, f"it has {len(row)} fields, the first line {len(header)}")
        said = dict(zip(header, (part.strip() for part in row), strict=True))
        m, n, k = (_side(name, number, each.upper(), said[sides[each]]) for each in ("m", "n", "k"))
        element = next((said[word] for word in ("type", "dtype", "q_dtype_w") if said.get(word)), "")
        result = next((said[word] for word in ("out", "outdtype") if said.get(word)), "bf16")
        yield _shape(name, number, (m, n, k), _type(element), _type(result) or "bf16")


def _side(name: str, line: int, word: str, text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise _malformed(name, line, f"{word} is {text!r:.40}; expected a whole number above 0")
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
        raise _malformed(name, 0, f"it is no JSON: {error}") from error
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
                raise _malformed(name, 0, f"{n if columns else k} can't be dealt to {parallel} devices")
            yield _shape(name, 0, (m, *sides), element, "bf16")


def _count(name: str, data: Mapping[str, Any], word: str) -> int:
    value = data.get(word)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise _malformed(
            name,
            0,
            f"{word} is {value!r:.40}; a model's config says it as a whole number",
            "a CSV of M, N and K is read, too",
        )
    return value


def _shape(name: str, line: int, sides: Iterable[int], element: str, result: str) -> ProblemShape:
    m, n, k = sides
    try:
        GemmProblem(m=m, n=n, k=k, result=result)
    except RotaError as error:
        raise _malformed(name, line, error.findings[0].message) from error
    return ProblemShape(m, n, k, element, result)


def _malformed(name: str, line: int, why: str, *fixes: str) -> TuneError:
    where = f"{name}:{line}" if line else name
    return TuneError(Finding(code="S103", message=f"{where}: {why}", evidence=(("file", name),), fixes=fixes))
