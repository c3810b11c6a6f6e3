"""Names and comments in source: takes a text, gives it back if C++ can use it as it is."""

from __future__ import annotations

import re
from collections.abc import Collection

from rota.errors import EmissionError, Finding

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9]*(_[A-Za-z0-9]+)*_?")  # the standard keeps a leading _ and any __ for itself
_KEYWORDS = frozenset(
    """alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class
    compl concept const consteval constexpr constinit const_cast continue co_await co_return co_yield decltype default
    delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline int long
    mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register
    reinterpret_cast requires return short signed sizeof static static_assert static_cast struct switch template this
    thread_local throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor
    xor_eq linux main unix""".split()  # noqa: SIM905  # a list literal would take a line each
)


def identifier(name: str, taken: Collection[str] = ()) -> str:
    """`name`, if it is a plain C++ identifier that neither a keyword nor the source itself takes."""
    if not _PLAIN.fullmatch(name) or name in _KEYWORDS or name in taken:
        why = "the source itself has that name" if name in taken else "C++ keeps it" if name in _KEYWORDS else ""
        raise EmissionError(
            Finding(
                code="T201",
                message=f"{name!r} can't be a name in C++ source" + (f": {why}" if why else ""),
                evidence=(("expected", "a letter, then letters, digits and single underscores"),),
                fixes=(f"rename the loop, op, value or schedule, for example to {_plain(name)}",),
            )
        )
    return name


def _plain(name: str) -> str:
    """The nearest name that can be one."""
    near = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")
    return near if _PLAIN.fullmatch(near) and near not in _KEYWORDS and near != name else f"my_{near}".rstrip("_")


def comment(text: str) -> str:
    """`text` behind two slashes, if all of it stays there: no line ends, and none is joined to the next."""
    if not text.isprintable() or "\\" in text:
        raise EmissionError(
            Finding(
                code="T201",
                message=f"{text!r:.80} can't stand in a comment of C++ source: the compiler would read on behind it",
                evidence=(("expected", "one line of printable characters, without a backslash"),),
                fixes=("take line breaks and backslashes out of names, reasons and the machine's name",),
            )
        )
    return f"// {text}"
