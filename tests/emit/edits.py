"""Drawn edits of an exchange document: takes a valid text and a random generator, gives another text.

Most edits break one thing, so that what is wrong is found where it stands; some are followed by what somebody would do
who wants the document to be taken all the same: entries numbered anew, certificate and repairs left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from random import Random
from typing import Any

Path = tuple[str | int, ...]

_PHASES = ("prologue", "kernel", "epilogue")
_NUMBERS = (
    0,
    1,
    -1,
    2,
    3,
    7,
    63,
    127,
    128,
    131,
    1000,
    2**31,
    10**20,
    -(10**20),
    0.5,
    1e300,
    float("nan"),
    float("inf"),
)
_OTHERS: tuple[Any, ...] = (
    None,
    True,
    False,
    "",
    "x",
    "FrameworkTag.BARRIER",
    "load",
    "wait",
    "vmcnt",
    "\ud800",
    [],
    {},
    [0],
    {"a": 1},
)


def edited(text: str, random: Random) -> tuple[str, str]:
    """The name of an edit, and what becomes of the text."""
    if random.random() < 0.02:
        return "text", _text_edit(text, random)
    document = json.loads(text)
    names = []
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        kind = random.choice(_EDITS)
        kind(document, random)
        names.append(kind.__name__.strip("_"))
    if random.random() < 0.4:
        _plausible(document, random)
        names.append("plausible")
    return "+".join(names), json.dumps(document)


def paths(node: Any, path: Path = ()) -> Iterator[Path]:  # any JSON
    """Every place of a document."""
    items: Any = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from paths(value, (*path, key))


def _at(document: Any, path: Path) -> Any:
    for step in path:
        document = document[step]
    return document


def _place(document: Any, random: Random, wanted: Callable[[Any], bool] = lambda _: True) -> Path | None:
    """A place whose value is wanted; one that is deep in a list is as likely as any other."""
    found = [path for path in paths(document) if wanted(_at(document, path))]
    return random.choice(found) if found else None


def _put(document: Any, path: Path | None, value: object) -> None:
    if path is not None:
        _at(document, path[:-1])[path[-1]] = value


def _delete(document: Any, random: Random) -> None:
    path = _place(document, random)
    if path is not None:
        del _at(document, path[:-1])[path[-1]]


def _duplicate(document: Any, random: Random) -> None:
    path = _place(document, random, lambda node: isinstance(node, list) and bool(node))
    if path is not None:
        elements = _at(document, path)
        elements.insert(random.randrange(len(elements) + 1), deepcopy(random.choice(elements)))


def _swap(document: Any, random: Random) -> None:
    path = _place(document, random, lambda node: isinstance(node, list | dict) and len(node) > 1)
    if path is not None:
        node = _at(document, path)
        one, other = random.sample(list(node) if isinstance(node, dict) else range(len(node)), 2)
        node[one], node[other] = node[other], node[one]


def _perturb(document: Any, random: Random) -> None:
    path = _place(document, random, lambda node: isinstance(node, int | float) and not isinstance(node, bool))
    if path is not None:
        value = _at(document, path)
        _put(document, path, random.choice((value + 1, value - 1, -value, value * 2, random.choice(_NUMBERS))))


def _flip(document: Any, random: Random) -> None:
    path = _place(document, random, lambda node: isinstance(node, bool))
    if path is not None:
        _put(document, path, not _at(document, path))


def _retype(document: Any, random: Random) -> None:
    _put(document, _place(document, random), deepcopy(random.choice((*_OTHERS, *_NUMBERS))))


def _reword(document: Any, random: Random) -> None:
    """A text becomes another one of the document."""
    path, other = (_place(document, random, lambda node: isinstance(node, str)) for _ in range(2))
    if path is not None and other is not None:
        _put(document, path, _at(document, other))


def _graft(document: Any, random: Random) -> None:
    """A part takes the place of another one that has the same name."""
    path = _place(document, random)
    if path is not None:
        same = [other for other in paths(document) if _role(other) == _role(path) and other != path]
        if same:
            _put(document, path, deepcopy(_at(document, random.choice(same))))


def _role(path: Path) -> tuple[object, ...]:
    return tuple("*" if isinstance(step, int) else step for step in path[-3:])


def _add_key(document: Any, random: Random) -> None:
    path = _place(document, random, lambda node: isinstance(node, dict))
    if path is not None:
        names = {other[-1] for other in paths(document) if isinstance(other[-1], str)}
        _at(document, path)[random.choice([*sorted(names), "more"])] = deepcopy(random.choice(_OTHERS))


def _nest(document: Any, random: Random) -> None:
    path = _place(document, random)
    if path is not None:
        value = _at(document, path)
        for _ in range(random.choice((1, 3, 300))):
            value = [value]
        _put(document, path, value)


def _entry(document: Any, random: Random) -> None:
    """An entry is left out, doubled, moved within its phase or into another one; a wait becomes weaker or stronger."""
    schedule = document.get("schedule")
    if not isinstance(schedule, dict):  # an edit before this one took it away
        return
    phases = [each for each in _PHASES if isinstance(schedule.get(each), list)]
    filled = [document["schedule"][each] for each in phases if document["schedule"][each]]
    if not filled:
        return
    entries = random.choice(filled)
    slot = random.randrange(len(entries))
    match random.randrange(5):
        case 0:
            del entries[slot]
        case 1:
            entries.insert(random.randrange(len(entries) + 1), deepcopy(entries[slot]))
        case 2:
            entries.insert(random.randrange(len(entries)), entries.pop(slot))
        case 3:
            random.choice(filled).append(entries.pop(slot))
        case _:
            _set_count(entries[slot], random.choice((0, 1, 2, 4, 8, 62, 63)))


def _set_count(entry: Any, count: int) -> None:
    """By stages a wait's count stands in its op; by values in its effect, and its name says it too."""
    op, effect = (entry.get(part) if isinstance(entry, dict) else None for part in ("op", "effect"))
    if isinstance(op, dict) and isinstance(effect, dict):
        effect["wait_value"] = count
        op["name"] = f"{str(op.get('name')).partition('(')[0]}({count})"
    elif isinstance(op, dict):
        op["wait_value"] = count


_EDITS = (
    _delete,
    _duplicate,
    _swap,
    _perturb,
    _perturb,
    _flip,
    _retype,
    _reword,
    _graft,
    _add_key,
    _nest,
    _entry,
    _entry,
)


def _plausible(document: Any, random: Random) -> None:
    schedule = document.get("schedule")
    if not isinstance(schedule, dict):
        return
    for phase in _PHASES:
        entries = schedule.get(phase)
        for slot, entry in enumerate(entries if isinstance(entries, list) else ()):
            if isinstance(entry, dict):
                entry["time_slot"], entry["phase"] = slot, phase.upper()
    if isinstance(schedule.get("prologue"), list) and random.random() < 0.8:
        if "stagger_index" in schedule:
            schedule["stagger_index"] = len(schedule["prologue"])
        else:
            schedule["warp_stagger_index"] = len(schedule["prologue"]) + 1
    for name in ("repairs", "kernel_deps", "findings", "certificate"):
        if random.random() < (0.8 if name in ("repairs", "kernel_deps") else 0.4):
            schedule.pop(name, None)


def _text_edit(text: str, random: Random) -> str:
    where = random.randrange(len(text))
    match random.randrange(4):
        case 0:
            return text[:where]
        case 1:
            return text[:where] + text[where + 1 :]
        case 2:
            return text[:where] + random.choice('{}[],:"0-\\\ud800\x00') + text[where:]
        case _:
            deep = random.choice((100, 1_000, 100_000))
            return text[:where] + "[" * deep + text[where:]
