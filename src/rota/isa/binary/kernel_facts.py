"""What a kernel demands of a launch, by its descriptor and notes."""

from __future__ import annotations

from dataclasses import dataclass

LANES = 64  # lanes of a wave; code for waves of another size is not executed
MOST_WORK_ITEMS = 1024  # work items of a workgroup, whatever a kernel says


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One explicit or hidden argument in the kernarg segment."""

    name: str
    offset: int
    size: int
    kind: str  # value_kind of the notes: global_buffer, by_value, hidden_block_count_x, ...

    @property
    def hidden(self) -> bool:
        """True if the runtime fills it in, not the caller."""
        return self.kind.startswith("hidden_")


@dataclass(frozen=True, slots=True, kw_only=True)
class FloatMode:
    """The float mode at the start of a kernel, as in the MODE register (CDNA3 ISA, "Mode register").

    Rounding: 0 nearest even, 1 up, 2 down, 3 towards zero. Denormals: 0 flushed in operands and results, 1 in results,
    2 in operands, 3 kept. "64" means floats of 16 and 64 bits.
    """

    round_32: int = 0
    round_64: int = 0
    denormals_32: int = 3
    denormals_64: int = 3
    dx10_clamp: bool = True
    ieee: bool = True
    fp16_overflow: bool = False

    @property
    def bits(self) -> int:
        low = self.round_32 | self.round_64 << 2 | self.denormals_32 << 4 | self.denormals_64 << 6
        return low | self.dx10_clamp << 8 | self.ieee << 9 | self.fp16_overflow << 23


@dataclass(frozen=True, slots=True, kw_only=True)
class Descriptor:
    """What the hardware gets to know of a kernel: memory in bytes, registers as allocated.

    AGPR 0 is register `accum_offset` of the file that VGPRs and AGPRs share. With `tg_split` the waves of a workgroup
    may run on several compute units, without LDS.
    """

    lds_bytes: int
    private_bytes: int
    kernarg_bytes: int
    vgprs: int
    sgprs: int
    user_sgprs: int
    accum_offset: int
    tg_split: bool
    float_mode: FloatMode = FloatMode()
    preload_offset: int = 0  # the first word of the arguments that is preloaded into user SGPRs
    workgroup_info: bool = False  # a scalar register with it follows the workgroup ids
    named_barriers: int = 0  # as the descriptor counts them


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelFacts:
    """Registers, memory and initial state of one kernel: the numbers of the notes, and the descriptor.

    `user_sgprs` names the contents of the first SGPRs with their sizes, in hardware order; `workgroup_ids` says which
    of x, y and z follow; `workitem_ids` is 0, 1 or 2 for x, xy or xyz in v0. None means that the notes leave a number
    out. `unnoted` are the missing keys that a launch needs; the descriptor or the hardware's limit replaces them.
    `entry` is the address of the first instruction: with preloaded arguments, 256 bytes after the descriptor's.
    """

    name: str
    arch: str
    vgprs: int  # of both files together, as the notes count them
    agprs: int | None
    sgprs: int
    vgpr_spills: int | None
    sgpr_spills: int | None
    lds_bytes: int
    private_bytes: int
    kernarg_bytes: int
    max_workgroup: int
    arguments: tuple[Argument, ...]
    user_sgprs: tuple[tuple[str, int], ...]
    workgroup_ids: tuple[bool, bool, bool]
    workitem_ids: int
    descriptor: Descriptor
    entry: int | None = None
    unnoted: tuple[str, ...] = ()
    required_workgroup: tuple[int, ...] | None = None
    dynamic_stack: bool = False
    cluster: tuple[int, ...] | None = None  # workgroups of a cluster, along each dimension

    @property
    def preload(self) -> int:
        """Words of the arguments that the hardware loads into SGPRs before the first instruction."""
        return dict(self.user_sgprs).get("kernarg_preload", 0)

    @property
    def spills(self) -> int | None:
        """Spilled registers; None unless the notes count those of both files."""
        if self.vgpr_spills is None or self.sgpr_spills is None:
            return None
        return self.vgpr_spills + self.sgpr_spills
