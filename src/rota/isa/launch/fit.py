"""Whether a launch fits its kernel: takes sizes and values, gives `Sizes`, or a finding before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rota.errors import Finding, IsaError
from rota.isa.launch.kernarg import Sizes, Triple, Value, dynamic_lds, named_arguments

if TYPE_CHECKING:
    from rota.isa.decoded import KernelProgram

MOST_WORKGROUPS = 1 << 20
"""Of a launch: more would take days here."""
_TRITON = "a kernel that Triton compiled takes two pointers more, to scratch memory: pass None, None"


def checked_sizes(program: KernelProgram, values: Sequence[Value], grid: Triple, block: Triple, more_lds: int) -> Sizes:
    """The sizes of a launch, if the kernel takes that many arguments and the machine such workgroups."""
    facts, machine = program.facts, program.architecture
    declared = [argument for argument in facts.arguments if not argument.hidden]
    counted = not named_arguments(facts) or len(declared) == len(values)
    whole = min(*grid, *block) > 0
    sizes = Sizes(grid=grid, block=block, fixed_lds=facts.descriptor.lds_bytes, dynamic_lds=more_lds)
    more = dynamic_lds(facts, values, sizes)
    lds = sizes.fixed_lds + more
    items = block[0] * block[1] * block[2] if whole else 0
    meant = facts.required_workgroup in {None, block}
    whole = whole and grid[0] * grid[1] * grid[2] <= MOST_WORKGROUPS
    if (
        counted
        and whole
        and meant
        and more_lds >= 0
        and items <= facts.max_workgroup
        and lds <= machine.lds_bytes.value
    ):
        return Sizes(grid=grid, block=block, fixed_lds=sizes.fixed_lds, dynamic_lds=more)
    missing = declared[len(values) :] if not counted else []
    raise IsaError(
        Finding(
            code="I107",
            message=f"the launch doesn't fit kernel {facts.name}",
            evidence=(
                ("arguments", f"{len(values)} given, {len(declared)} declared"),
                *(("missing", f"{each.name}, {each.kind} of {each.size} bytes") for each in missing),
                *((("grid", f"{grid} workgroups, at most {MOST_WORKGROUPS} in all"),) if not whole else ()),
                ("workgroup", f"{block} work-items, at most {facts.max_workgroup} in all"),
                *((("compiled for", f"{facts.required_workgroup} work-items"),) if not meant else ()),
                ("LDS", f"{lds} bytes; {machine.arch} has {machine.lds_bytes.value}"),
            ),
            fixes=(_TRITON,) if [each.kind for each in missing] == ["global_buffer"] * 2 else (),
        )
    )
