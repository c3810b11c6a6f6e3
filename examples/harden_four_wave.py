"""Hardening the reference's 4-wave GEMM: takes it as published, gives its races, their replay and the least repair."""

from __future__ import annotations

from collections import Counter

from rota import CompiledSchedule, Finding, KernelGeometry, Pipeline4Wave, Repair, compile_schedule, verify

GEOMETRY = KernelGeometry(lgkm_per_load_a=8, lgkm_per_load_b=8)  # 256x256x64: eight LDS reads per half tile


def as_written() -> CompiledSchedule:
    """What the reference's rules derive, entry for entry."""
    return compile_schedule(Pipeline4Wave(GEOMETRY), sync="as_written")


def races() -> tuple[Finding, ...]:
    """What is wrong with it, for every trip count and every interleaving."""
    return tuple(finding for finding in verify(as_written()).errors if finding.witness is not None)


def hardened() -> CompiledSchedule:
    """The same schedule with the fewest barriers, then the fewest waits, that make the proof hold."""
    return compile_schedule(Pipeline4Wave(GEOMETRY))


def repairs() -> tuple[Repair, ...]:
    """What was added or strengthened, and for whom."""
    return hardened().repairs


def main() -> None:
    """Print the findings, what replaying one does, the repair, and what it is predicted to cost."""
    from rota.cycles.predict import predict
    from rota.execute.executor import replay
    from rota.pipeline.geometry import TileShape

    found = races()
    print("as written:", dict(Counter(finding.code for finding in found)))
    print(found[0])
    witness = next(finding.witness for finding in found if finding.witness)
    print("replayed:", replay(as_written(), witness).first_wrong)
    print("repaired:", *repairs(), sep="\n  ")
    print(str(hardened().certificate).splitlines()[0])
    shape = TileShape(geometry=GEOMETRY, waves=4, instruction="v_mfma_f32_16x16x32_bf16")
    before, after = (predict(each, shape, band=False).cycles for each in (as_written(), hardened()))
    print(f"predicted: {before:.0f} clocks per K-tile as written, {after:.0f} hardened")


if __name__ == "__main__":
    main()
