"""Small programs to repair: takes a seed, gives a loop of a few ops that was never derived, of one of three kinds.

A double buffer and a single buffer by stages, with waits and barriers of their own here and there, and a loop by values
without any; in lockstep and staggered, with registers that the compiler tracks and that it doesn't, with remainders,
on machines whose counters keep their order and on such as don't.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

from rota import DoubleBufferTag, OpDesc, OpRole, PipelineConfig, ResourceKind, WarpStaggerRule
from rota.pipeline.compiled_pipeline import CompiledPipeline
from rota.program.kinds import Home, OpKind
from rota.program.loop_spec import LoopOp, LoopSpec, Read, Value
from rota.values.compile_loop import unroll_bare
from rota.values.compiled_loop import CompiledLoop
from rota.values.loop import Loop
from rota.values.unroll import Placement
from tests.findings.proofs import fragment, load, loop, mma

Drawn = CompiledPipeline | CompiledLoop


def drawn(seed: int, longest: int = 6) -> Drawn:
    """The program of a seed, of about as many ops as asked for at most."""
    random = Random(seed)
    kinds: list[Callable[[Random, int], Drawn]] = [_double_buffer, _double_buffer, _single_buffer, _by_values]
    made = random.choice(kinds)(random, longest)
    if random.random() < 0.4:
        made = _staggered(made, random)
    made = replace(made, compiler_tracks_registers=random.random() < 0.5)
    # Where no order is kept, a repair doesn't rely on a compiler's wait, not even for the youngest op, and may add one.
    if random.random() < 0.4 and not made.compiler_tracks_registers:
        made = replace(made, machine=made.machine.doubting(random.choice(("vmcnt", "lgkmcnt"))))
    return made


def _phases(random: Random, ops: list[OpDesc], longest: int) -> CompiledPipeline:
    """Some of these ops, each as often as it comes, cut into prologue, kernel and epilogue."""
    body = [_with_tokens(random.choice(ops), random) for _ in range(random.randint(2, longest))]
    first, last = sorted(random.randint(0, len(body)) for _ in range(2))
    return loop(prologue=body[:first], kernel=body[first:last], epilogue=body[last:])


def _with_tokens(op: OpDesc, random: Random) -> OpDesc:
    if op.is_framework or op.role is OpRole.COMPUTE:
        return op
    return op.but(vm_cost=random.randint(1, 3), lgkm_cost=random.randint(1, 3))


def _sync(random: Random) -> list[OpDesc]:
    return [OpDesc.barrier(), OpDesc.wait_vm(random.randint(0, 4)), OpDesc.wait_lgkm(random.randint(0, 3))]


def _double_buffer(random: Random, longest: int) -> CompiledPipeline:
    moves = [load(0), load(1), fragment(0), fragment(1), load(0, channel=1), fragment(0, channel=1), mma()]
    return _phases(random, [*moves, *moves, *_sync(random)], longest)


def _single_buffer(random: Random, longest: int) -> CompiledPipeline:
    moves = [
        OpDesc(tag=DoubleBufferTag.LOAD_A, role=OpRole.GLOBAL_LOAD),
        OpDesc(tag=DoubleBufferTag.LOAD_B, role=OpRole.SHARED_STORE),
        OpDesc(tag=DoubleBufferTag.MMA_LOAD_A, role=OpRole.FRAGMENT_LOAD, subtile=random.randint(0, 1)),
        OpDesc(tag=DoubleBufferTag.MMA, role=OpRole.COMPUTE, resource=ResourceKind.MMA_UNIT),
    ]
    made = _phases(random, [*moves, *moves, *_sync(random)], longest)
    while sum(entry.op.role is OpRole.GLOBAL_LOAD for entry in made.kernel) != 1:
        made = _phases(random, [*moves, *moves, *_sync(random)], longest)  # a single buffer fetches one tile a trip
    return replace(made, config=PipelineConfig(depth=1, num_partitions=1))


def _by_values(random: Random, _: int) -> CompiledLoop:
    """One tile in one or two parts, one or two reads of it, a product that may be stored in a second tile and read."""
    values = [Value(name="T", home=Home.LDS, size=1), Value(name="c", home=Home.ACCUMULATOR, size=1)]
    ops = [_op(f"load{n}", OpKind.DMA, (), "T", random) for n in range(random.randint(1, 2))]
    for name in "ab"[: random.randint(1, 2)]:
        values.append(Value(name=name, home=Home.REGISTERS, size=1))
        ops.append(_op(f"read_{name}", OpKind.LDS_READ, ("T",), name, random))
    last = ops[-1].writes
    if random.random() < 0.3:
        values += [Value(name="S", home=Home.LDS, size=1), Value(name="s", home=Home.REGISTERS, size=1)]
        ops.append(_op("store", OpKind.LDS_WRITE, last, "S", random))
        ops.append(_op("read_s", OpKind.LDS_READ, ("S",), "s", random))
        last = ("s",)
    ops.append(_op("mma", OpKind.MMA, tuple(dict.fromkeys((*last, "a"))), "c", random))
    spec = LoopSpec(name="drawn", waves=4, values=tuple(values), ops=tuple(ops))
    interval = len(ops)
    starts: list[int] = []
    while len(starts) < len(ops):
        starts.append((starts[-1] if starts else 0) + random.choice([0, 1, 1, interval // 2]))
    depth = random.choice([1, 1, 2])
    placement = Placement(interval=interval, starts=tuple(starts), copies=(("T", depth),))
    return unroll_bare(spec, placement, remainder=random.choice([0, 0, 1]))


def drawn_loop(seed: int, *, staged: bool = False) -> LoopSpec:
    """A loop by values that can be compiled: tiles, loads of them in parts, reads, products; `staged` in registers."""
    random = Random(seed)
    made = Loop("drawn", waves=4)
    fragments = []
    for name in "AB"[: random.randint(1, 2)]:
        counts = [random.randint(1, 8) for _ in range(random.randint(1, 2))]
        made.tile(name, size=1024 * sum(counts))
        for part, count in enumerate(counts):
            made.load(name, name=f"load_{name}{part}", instructions=count, moved=1024 * count)
        fragments += [
            made.fragment(f"{name.lower()}{part}", name, registers=8, instructions=random.randint(2, 4))
            for part in range(random.randint(1, 2))
        ]
    for number, operand in enumerate(fragments):
        made.accumulator(f"c{number}", registers=4)
        instruction, count = "v_mfma_f32_16x16x16_bf16", random.randint(4, 32)
        made.mma(f"c{number}", operand, random.choice(fragments), instruction=instruction, instructions=count)
    spec = made.build()
    return _through_registers(spec) if staged else spec


def _through_registers(spec: LoopSpec) -> LoopSpec:
    """The same loop, whose loads fill registers and whose stores fill the tiles."""
    loads = [op for op in spec.ops if op.kind is OpKind.DMA]
    staging = [Value(name=f"of_{op.name}", home=Home.REGISTERS, size=4 * op.instructions) for op in loads]
    filled = [
        replace(op, kind=OpKind.GLOBAL_LOAD, writes=(value.name,)) for op, value in zip(loads, staging, strict=True)
    ]
    stores = [
        replace(op, name=f"store_of_{op.name}", kind=OpKind.LDS_WRITE, reads=(Read(value=value.name),))
        for op, value in zip(loads, staging, strict=True)
    ]
    others = [op for op in spec.ops if op.kind is not OpKind.DMA]
    return replace(spec, values=(*spec.values, *staging), ops=(*filled, *stores, *others))


def _op(name: str, kind: OpKind, reads: tuple[str, ...], writes: str, random: Random) -> LoopOp:
    operands = tuple(Read(value=each) for each in reads)
    return LoopOp(name=name, kind=kind, reads=operands, writes=(writes,), instructions=random.randint(1, 3))


def _staggered(made: Drawn, random: Random) -> Drawn:
    index = random.randint(0, len(made.prologue))
    if isinstance(made, CompiledLoop):
        return replace(made, staggered=True, stagger_index=index)
    config = replace(made.config, warp_stagger=WarpStaggerRule.fixed(index))
    return replace(made, config=config, warp_stagger_index=index)
