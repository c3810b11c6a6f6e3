"""Limits of the machine that a program must keep: barriers, wait encodings, counters, registers, LDS."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from rota.errors import Concern, Finding, Severity
from rota.program.entry import Entry, Place, Space, wait_name
from rota.program.kinds import BITS, Home, OpKind, takes_scales
from rota.program.loop_spec import LoopOp, LoopSpec, Value
from rota.program.lowered import Barrier, LoweredProgram
from rota.program.machine import LANES, Machine
from rota.targets.cdna import registers_named


def check_barrier_counts(program: LoweredProgram) -> Iterator[Finding]:
    """Check that no wave waits forever: per trip every role arrives as often as others wait."""
    kernel = _barriers(program.kernel)
    outside = _barriers((*program.prologue, *program.epilogue))
    for barrier in program.barriers:
        for where, part in (("one trip of the loop", kernel), ("prologue and epilogue together", outside)):
            counts = _counts(part, barrier)
            at_once = any(entry.effect.arrives == entry.effect.awaits == barrier.name for entry in part)
            exact = part is kernel or program.reentrant or at_once
            fewest, most = min(counts.arrivals.values(), default=0), max(counts.waits.values(), default=0)
            if most > fewest or (exact and len({*counts.arrivals.values(), *counts.waits.values()}) > 1):
                yield _uneven(program, barrier, where, part, counts)


def check_arrivals_first(program: LoweredProgram) -> Iterator[Finding]:
    """Check that a role that arrives and waits at a barrier has always arrived at least as often as it waited."""
    apart = [entry for entry in _barriers(program.entries) if entry.effect.arrives != entry.effect.awaits]
    for barrier in program.barriers if apart else ():
        for role in set(barrier.arriving) & set(barrier.waiting):
            ahead = 0
            for entry in apart:
                if entry.executed_by(role):
                    ahead += (entry.effect.arrives == barrier.name) - (entry.effect.awaits == barrier.name)
                if ahead < 0:
                    yield Finding(
                        "B103",
                        f"{entry.op} waits for {program.roles[role].name} itself, which has yet to arrive",
                        concerns=(entry.concern(),),
                        evidence=(("arrivals less waits", ahead),),
                        fixes=("let the role arrive before it waits",),
                    )
                    break


class _Counts(NamedTuple):
    """How often each role arrives, and waits, at a barrier."""

    arrivals: dict[int, int]
    waits: dict[int, int]


def _barriers(part: tuple[Entry, ...]) -> tuple[Entry, ...]:
    return tuple(entry for entry in part if entry.effect.kind is OpKind.BARRIER)


def _counts(part: tuple[Entry, ...], barrier: Barrier) -> _Counts:
    arrivals = [entry for entry in part if entry.effect.arrives == barrier.name]
    waits = [entry for entry in part if entry.effect.awaits == barrier.name]
    return _Counts(
        {role: sum(entry.executed_by(role) for entry in arrivals) for role in barrier.arriving},
        {role: sum(entry.executed_by(role) for entry in waits) for role in barrier.waiting},
    )


def _uneven(program: LoweredProgram, barrier: Barrier, where: str, part: tuple[Entry, ...], counts: _Counts) -> Finding:
    names = [role.name for role in program.roles]
    own = (entry for entry in part if barrier.name in (entry.effect.arrives, entry.effect.awaits))
    alone = [entry for entry in own if entry.roles is not None]
    numbers = dict.fromkeys((*counts.arrivals.values(), *counts.waits.values()))
    return Finding(
        "B101",
        f"{where}: roles execute {' and '.join(map(str, numbers))} barriers; one would wait forever",
        concerns=tuple(
            entry.concern(f"only {' and '.join(names[role] for role in entry.roles or ())}") for entry in alone
        ),
        evidence=(
            *((f"arrivals of {names[role]}", count) for role, count in counts.arrivals.items()),
            *((f"waits of {names[role]}", count) for role, count in counts.waits.items()),
        ),
    )


def check_roles(program: LoweredProgram) -> Iterator[Finding]:
    """Check that all roles that do a data op execute it; what one role moves alone is missing in the others.

    Only roles that take part in a barrier may execute it.
    """
    everyone = tuple(range(len(program.roles)))
    alike = all(role.does is None for role in program.roles)
    part = {barrier.name: barrier for barrier in program.barriers}
    for entry in program.entries:
        if entry.op.kind is OpKind.BARRIER:
            roles = everyone if entry.roles is None else entry.roles
            for name, side in ((entry.effect.arrives, "arriving"), (entry.effect.awaits, "waiting")):
                taking_part = roles if name is None else getattr(part[name], side)
                if not set(roles) <= set(taking_part):
                    yield _report_misplaced(program, entry, roles, taking_part)
        elif not (alike and entry.roles is None) and not entry.op.is_framework and entry.op.kind is not OpKind.NOTHING:
            roles, due = everyone if entry.roles is None else entry.roles, program.doing(entry.op.name)
            if roles != due:
                yield _report_misplaced(program, entry, roles, due)


def _report_misplaced(program: LoweredProgram, entry: Entry, roles: tuple[int, ...], due: tuple[int, ...]) -> Finding:
    def named(numbers: tuple[int, ...]) -> str:
        return " and ".join(program.roles[n].name for n in numbers) or "no role"

    return Finding(
        "B102",
        f"{entry.op} is executed by {named(roles)} alone; it is for {named(due)}",
        concerns=(entry.concern(),),
        evidence=(("executed by", named(roles)), ("for", named(due))),
    )


def check_private_registers(program: LoweredProgram) -> Iterator[Finding]:
    """Check that registers are read by the roles that wrote them, since each wave has its own.

    A sum that several ops add to belongs to the same roles in all of them.
    """
    everyone = set(range(len(program.roles)))
    if all(entry.roles is None or entry.op.is_framework for entry in program.entries):
        return
    writers: dict[Place, set[int]] = {}
    for entry in program.entries:
        own = everyone if entry.roles is None else set(entry.roles)
        for place in entry.effect.writes:
            before = writers.get(place, own)
            if place.space is Space.ACCUMULATOR and before != own:
                yield _another_writes(program, entry, place, own)
            writers[place] = before & own
    for entry in program.entries:
        roles = everyone if entry.roles is None else set(entry.roles)
        for place in entry.effect.reads:
            if place.space.is_private and not roles <= writers.get(place, everyone):
                yield _another_writes(program, entry, place, roles)


def _another_writes(program: LoweredProgram, entry: Entry, place: Place, roles: set[int]) -> Finding:
    does, done = ("reads", "read by") if place in entry.effect.reads else ("adds to", "added to by")
    return Finding(
        "B104",
        f"{entry.op} {does} {place}, which another role writes; registers belong to one wave",
        concerns=(entry.concern(),),
        evidence=((done, ", ".join(program.roles[n].name for n in sorted(roles))),),
        fixes=("hand the data over through LDS",),
    )


def check_wait_encodings(program: LoweredProgram) -> Iterator[Finding]:
    """Find counts that have all bits set or don't fit their field, which encode no wait."""
    machine = program.machine
    for step in program.entries:
        if step.effect.kind is not OpKind.WAIT:
            continue
        counter, count = step.effect.counter, step.effect.wait_value
        if counter is not None and count >= machine.no_wait(counter):
            largest = machine.largest_wait(counter)
            yield Finding(
                "L101",
                f"{step.op} waits for nothing: the largest {counter} wait is {largest}",
                concerns=(step.concern(),),
                evidence=(("count", count), ("largest real wait", largest)),
                fixes=(f"{wait_name(counter)}({largest})",),
            )


def check_counters(fullest: dict[str, tuple[int, Entry | None]], machine: Machine) -> Iterator[Finding]:
    """Report L102 where ops issue past a full counter: the wave stalls, which is slow but not wrong."""
    for counter, (pending, step) in fullest.items():
        if step is not None and pending > machine.no_wait(counter):
            yield Finding(
                "L102",
                f"{pending} tokens are in flight at once; {counter} holds {machine.no_wait(counter)}",
                severity=Severity.NOTE,
                concerns=(step.concern("stalls until an older op has completed"),),
                evidence=(("tokens", pending), ("counter holds", machine.no_wait(counter))),
            )


def check_budgets(
    machine: Machine, lds_bytes: int | None, registers: int | None, register_limit: int | None
) -> Iterator[Finding]:
    """Check that the sizes the schedule states fit the machine."""
    if lds_bytes is not None and lds_bytes > machine.lds_bytes.value:
        yield Finding(
            "L103",
            f"the tiles take {lds_bytes} bytes of LDS; {machine.name} has {machine.lds_bytes.value}",
            evidence=(("bytes", lds_bytes), ("limit", machine.lds_bytes.value)),
        )
    if registers is not None and register_limit is not None and registers > register_limit:
        yield Finding(
            "L104",
            f"the loop needs {registers} registers a lane; its waves on {machine.name} have {register_limit}",
            evidence=(("registers", registers), ("limit", register_limit)),
        )


_PATHS = {
    OpKind.DMA: "a DMA into LDS",
    OpKind.GLOBAL_LOAD: "a load into registers",
    OpKind.GLOBAL_STORE: "a store to memory",
    OpKind.ATOMIC: "an atomic",
}
_WIDEST = 16  # bytes that a lane moves with one ds_read, ds_write or load into registers


def find_impossible(loop: LoopSpec, machine: Machine) -> Iterator[Finding]:
    """Find numbers no kernel could have: too many waves, overfilled tiles, impossible widths and registers."""
    most = machine.waves_per_workgroup.value
    if loop.waves > most:
        yield Finding(
            "L105",
            f"{loop.name} has {loop.waves} waves; a workgroup of {machine.name} has at most {most}",
            evidence=(("waves", loop.waves), ("limit", most)),
        )
    values = {value.name: value for value in loop.values}
    yield from _find_overfilled(loop, values)
    for op in loop.ops:
        yield from _find_untracked(op, machine)
        if op.kind.asynchronous and op.moved:
            yield from _find_too_wide(op, loop.waves * LANES, machine)
        elif op.kind is OpKind.MMA:
            yield from _find_too_few_registers(op, values)


def _find_untracked(op: LoopOp, machine: Machine) -> Iterator[Finding]:
    """Find memory ops that no counter tracks: the machine has no such instruction."""
    if op.kind.asynchronous and machine.counter_of(op.kind) is None:
        yield Finding(
            "L110",
            f"{op.name} is an op of kind {op.kind.word} ({op.kind.does}); {machine.name} has no such instruction",
            concerns=(Concern(label=op.name, source=op.source),),
            evidence=(("kind", op.kind.word), ("machine", machine.name)),
        )


def _find_overfilled(loop: LoopSpec, values: Mapping[str, Value]) -> Iterator[Finding]:
    writers: dict[str, list[LoopOp]] = {}
    for op in loop.ops:
        for name in op.writes if op.moved else ():
            writers.setdefault(name, []).append(op)
    for name, ops in writers.items():
        moved, size = sum(op.moved for op in ops), values[name].size
        if values[name].home is Home.LDS and moved > size:
            yield Finding(
                "L108",
                f"{moved} bytes are written into {name}, which holds {size}",
                concerns=tuple(Concern(label=op.name, role=f"{op.moved} bytes", source=op.source) for op in ops),
                evidence=(("bytes written", moved), ("bytes of the tile", size)),
            )


def _find_too_wide(op: LoopOp, lanes: int, machine: Machine) -> Iterator[Finding]:
    """Find lanes that move more with one instruction than the machine's widest instruction moves."""
    to_lds = op.kind is OpKind.DMA
    widest = machine.dma_width.value if to_lds else _WIDEST
    turns = op.instructions * lanes
    if op.moved > widest * turns:
        path = _PATHS.get(op.kind, "an LDS access")
        yield Finding(
            "L106",
            f"{op.name} would move {-(-op.moved // turns)} bytes per lane and instruction; "
            f"{path} of {machine.name} moves at most {widest}",
            concerns=(Concern(label=op.name, source=op.source),),
            evidence=(("bytes", op.moved), ("instructions x waves x lanes", turns), ("widest", widest)),
            fixes=(f"instructions={-(-op.moved // (widest * lanes))}",),
        )


def _find_too_few_registers(op: LoopOp, values: Mapping[str, Value]) -> Iterator[Finding]:
    """Find matrix ops whose operands or result lack the registers of one instruction."""
    needed = registers_named(op.instruction, *(BITS[each] for each in op.formats))
    if needed is None:
        return
    named = [*(read.value for read in op.reads), *op.inputs]
    operands = [name for name in named if name not in op.scales]
    factors = needed.a + needed.b if len(operands) > 1 else min(needed.a, needed.b)
    checks = [("operands", operands, factors), ("result", op.writes, needed.result)]
    if takes_scales(op.instruction):
        checks.append(("scales", op.scales, 1))
    for what, names, least in checks:
        size = sum(values[name].size for name in names)
        if size < least:
            yield Finding(
                "L109",
                f"the {what} of {op.name}, {' and '.join(names) or 'none'}, "
                f"{'has' if what == 'result' else 'have'} {size} registers; one {op.instruction} takes {least}",
                concerns=(Concern(label=op.name, source=op.source),),
                evidence=(("registers", size), ("of one instruction", least)),
            )
