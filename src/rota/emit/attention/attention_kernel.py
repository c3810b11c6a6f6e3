"""A whole attention forward in HIP: takes a compiled schedule, gives a kernel for any numbers of queries and keys.

The loop is the schedule's, over tiles of keys that every row of the workgroup sees.  Around it: Q, edges by the bounds
of buffer resources, tiles at the end of the keys or across the diagonal, which are masked, and O with its log-sum-exp.
"""

from __future__ import annotations

from collections.abc import Iterator

from rota.compiled.compiled_schedule import CompiledSchedule
from rota.emit.attention.attention_finish import end_lines, rest_tile_lines
from rota.emit.attention.attention_ops import AttentionOps, AttentionStatement, copies_of, named
from rota.emit.attention.attention_shape import BLOCK, DEPTH, ELEMENT_BYTES, SIDE, ForwardShape, forward_shape
from rota.emit.attention.attention_spacing import wait_states
from rota.emit.attention.attention_words import attention_types, attention_words
from rota.emit.gemm.buffer_resource import asm_resource, builtin_resource
from rota.emit.gemm.gemm_words import macros
from rota.emit.gemm.loop_form import LoopForm
from rota.emit.gemm.program_form import form_of
from rota.emit.refusal import unfit
from rota.emit.register_waits import with_register_waits
from rota.emit.text.contract import contract
from rota.emit.text.entry_reasons import sync_reason, sync_reasons
from rota.emit.text.marks import FIRST_MARK, LAST_MARK
from rota.emit.text.names import comment, identifier
from rota.emit.text.sync_text import apart_text, check_words, sync_text
from rota.emit.whole.whole_options import Parameter
from rota.program.effects import Place, Space
from rota.program.entry import Entry
from rota.program.machine import LANES
from rota.program.phase import Phase
from rota.targets.architecture import architecture_of

_FAR_APART = 100


ATTENTION_PARAMETERS: tuple[Parameter, ...] = (
    Parameter("const void*", "Q", "queries x head, bf16"),
    Parameter("const void*", "K", "keys x head"),
    Parameter("const void*", "V", "keys x head"),
    Parameter("void*", "O", "queries x head"),
    Parameter("float*", "L", "log-sum-exp of each row, batches x heads x queries, or null"),
    *(
        Parameter("long long", f"{name}_{what}", f"elements from {one} of {name.upper()} to the next")
        for name in "qkvo"
        for what, one in (("row", "a row"), ("head", "a head"), ("batch", "a batch"))
    ),
    Parameter("int", "queries", "rows of Q"),
    Parameter("int", "keys", "rows of K and V"),
    Parameter("int", "heads", "of Q"),
    Parameter("int", "kv_heads", "of K and V, of which `heads` is a multiple"),
    Parameter("int", "causal", "not 0: a query sees the keys up to its own number plus `shift`"),
    Parameter("int", "shift", "keys minus queries, to let the last query see all keys; or 0"),
    Parameter("float", "scale", "factor of the scores, more than 0"),
)
"""Of every attention kernel."""


def emit_attention(compiled: CompiledSchedule) -> str:
    """The kernel."""
    check_words(compiled.lowered)
    planned = with_register_waits(compiled)
    kernel = AttentionKernel(planned)
    words = list(attention_words())
    name = identifier(attention_name(planned), macros(words))
    machine = planned.lowered.machine
    lines = [comment(f"O = softmax(scale Q K^T) V on {machine.name} ({machine.arch})."), *words, ""]
    return "\n".join([*lines, *kernel.lines(name), "", *(f"#undef {macro}" for macro in macros(words)), ""])


def attention_name(planned: CompiledSchedule) -> str:
    """What the kernel is called."""
    return form_of(planned.lowered).symbol


def shape_of(compiled: CompiledSchedule) -> ForwardShape | None:
    """What attention a schedule computes, if any."""
    form = form_of(compiled.lowered)
    return forward_shape(form.loop) if isinstance(form, LoopForm) else None


def attention_shape(compiled: CompiledSchedule) -> ForwardShape:
    """What the schedule computes; T203 if that isn't attention as it can be written."""
    shape = shape_of(compiled)
    if shape is None:
        raise unfit(
            f"{compiled.name} isn't the loop of an attention forward as a ForwardShape declares it",
            fixes=("rota.kernels.attention_forward has shapes whose loops can be written",),
        )
    return shape


class AttentionKernel:
    """Writes the kernel from top to bottom."""

    def __init__(self, compiled: CompiledSchedule) -> None:
        self.compiled = compiled
        self.program = compiled.lowered
        self.shape = attention_shape(compiled)
        self.copies = copies_of(self.program.entries)
        self.ops = AttentionOps(self.shape, self.copies)
        self.reasons = sync_reasons(compiled)
        self.architecture = architecture_of(self.program.machine)
        self.issued: dict[Phase, list[AttentionStatement | None]] = {
            phase: [
                None if entry.op.is_framework else self.ops.issued(entry, phase) for entry in self.program.phase(phase)
            ]
            for phase in Phase
        }
        self.apart = wait_states(self.issued, self.architecture)

    def lines(self, name: str) -> Iterator[str]:
        """The kernel under a name."""
        yield from self._contract(name)
        yield from self._head(name)
        yield from (f"  {line}" for line in self._body())
        yield "#endif"
        yield "}"

    def _body(self) -> Iterator[str]:
        shape, program = self.shape, self.program
        yield from self._sizes()
        yield from self._resources()
        yield from self._places()
        yield from self._queries()
        carried = [name for r in shape.row_blocks for name in self._carried(r)]
        yield from self._state()
        yield "int done = 0;  // tiles of keys that are summed up"
        yield f"if (whole_tiles >= {program.tiles_outside}) {{"
        yield f"  int trips = (whole_tiles - {program.tiles_outside}) / {program.tiles_per_trip};"
        yield f"  done = {program.tiles_outside} + {program.tiles_per_trip} * trips;"
        yield from (f"  {line}" for line in self._registers(carried))
        yield f"  ROTA_MARK({FIRST_MARK:#x})"
        yield from self._phase(Phase.PROLOGUE)
        yield ""
        for tile in "kv":
            yield f"  int {tile}_at = {program.tiles_per_trip} * {tile}_tile;  // bytes before this trip's tiles"
        yield "  #pragma clang loop unroll(disable)"
        yield "  for (; trips > 0; --trips) {"
        yield from self._phase(Phase.KERNEL)
        for tile in "kv":
            yield f"    {tile}_at += {program.tiles_per_trip} * {tile}_tile;"
        yield "  }"
        yield ""
        yield from self._phase(Phase.EPILOGUE)
        yield f"  ROTA_MARK({LAST_MARK:#x})"
        yield '  asm volatile("s_nop 15\\n\\ts_nop 3"); ROTA_FENCE  // the last results are in their registers'
        yield from (f"  {self._kept(name)} = {named(self._last(name))};" for name in carried)
        yield "}"
        yield ""
        yield from rest_tile_lines(shape, self.ops.start("V"))
        yield from end_lines(shape)

    def _contract(self, name: str) -> Iterator[str]:
        shape, program = self.shape, self.program
        yield f"// {name}"
        yield "// Q, K, V and O: bf16, the elements of a head side by side; any number of queries and keys from 1 on."
        yield "// Rows, heads and batches are any multiples of 8 elements apart; all begin at multiples of 16 bytes."
        yield (
            f"// {shape.keys} * ({program.tiles_outside} + {program.tiles_per_trip} * trips) keys that all rows of a "
            "workgroup see are taken by the schedule's loop, the rest unpipelined and masked."
        )
        yield "// A row that sees no key is 0, and its log-sum-exp minus infinity."
        yield (
            f"// Launch: grid (ceil(queries / {self.rows}), heads, batches), {shape.waves * LANES} threads, "
            "no dynamic LDS."
        )
        yield "// The rows of one head of K and of V take less than 2 GiB; the launcher checks it, the kernel doesn't."
        yield f"// Compile with -O2 or -O3 (clang++ -x hip --offload-arch={self.architecture.toolchain})."
        yield f"// LDS: {self.ops.lds_bytes} bytes."
        yield from contract(self.compiled)
        yield "// Comments give the entry: its number in its phase, its op, and why a wait or barrier stands there."

    @property
    def rows(self) -> int:
        """Rows of Q of one workgroup."""
        return self.shape.rows * self.shape.waves

    def _head(self, name: str) -> Iterator[str]:
        shape = self.shape
        threads, per_simd = shape.waves * LANES, -(-shape.waves // 4)
        yield (
            f'extern "C" __attribute__((global, amdgpu_flat_work_group_size({threads}, {threads}), '
            f"amdgpu_waves_per_eu({per_simd}, {per_simd})))"
        )
        yield f"void {name}({', '.join(f'{each.type} {each.name}' for each in ATTENTION_PARAMETERS)}) {{"
        yield "  " + " ".join(f"(void){each.name};" for each in ATTENTION_PARAMETERS)
        yield "#ifdef __HIP_DEVICE_COMPILE__  // the host needs the name alone"
        yield from (f"  {line}" for line in attention_types())
        yield f"  __attribute__((shared, aligned(16))) static char memory[{self.ops.lds_bytes}];"

    def _sizes(self) -> Iterator[str]:
        shape, rows = self.shape, self.rows
        yield "const int thread = __builtin_amdgcn_workitem_id_x(), lane = thread & 63;"
        yield "const int wave = __builtin_amdgcn_readfirstlane(thread >> 6);"
        yield f"const int lane_row = lane % {SIDE}, lane_group = lane / {SIDE};"
        yield "const long long batch = __builtin_amdgcn_workgroup_id_z(), head = __builtin_amdgcn_workgroup_id_y();"
        yield "const long long kv_head = head / (heads / kv_heads);"
        yield f"const int first_row = (int)__builtin_amdgcn_workgroup_id_x() * {rows};"
        yield f"const int wave_row = first_row + wave * {shape.rows};"
        yield "// Keys that the first row sees, and those that the last one does: tiles between them are masked."
        yield f"const int last_row = queries - first_row < {rows} ? queries - 1 : first_row + {rows - 1};"
        for which in ("first", "last"):
            yield f"long long {which}_sees = causal ? (long long){which}_row + shift + 1 : keys;"
            yield f"{which}_sees = {which}_sees < 0 ? 0 : {which}_sees < keys ? {which}_sees : keys;"
        yield f"const int whole_tiles = __builtin_amdgcn_readfirstlane((int)first_sees / {shape.keys});"
        yield f"const int tiles = __builtin_amdgcn_readfirstlane(((int)last_sees + {shape.keys - 1}) / {shape.keys});"
        yield "const float base_two = scale * 1.4426950408889634f;  // exponentials are of two"
        yield (
            "const u32 scale_bits = __builtin_amdgcn_readfirstlane(__builtin_bit_cast(u32, base_two)), "
            "minus_scale = scale_bits ^ 0x80000000u;"
        )
        yield "const u64 scales = scale_bits;"
        yield ""

    def _resources(self) -> Iterator[str]:
        shape = self.shape
        yield "// Buffer resources: base, size in bytes (beyond it loads give 0), raw format."
        for name, count, which in (("q", "queries", "head"), ("k", "keys", "kv_head"), ("v", "keys", "kv_head")):
            yield f"const int {name}_row_bytes = (int)({name}_row * {ELEMENT_BYTES});"
            base = f"(u64){name.upper()} + (u64)((batch * {name}_batch + {which} * {name}_head) * {ELEMENT_BYTES})"
            size = f"({count} - 1) * {name}_row_bytes + {shape.row_bytes}"
            if name == "q":
                base += f" + (u64)((long long)first_row * q_row * {ELEMENT_BYTES})"
                size = f"(last_row - first_row) * {name}_row_bytes + {shape.row_bytes}"
            yield f"const u64 {name}_base = {base};"
            yield f"const u32 {name}_size = (u32)({size});"
        for name in "kv":
            yield asm_resource(name, f"{name}_size")
        yield builtin_resource("q", "q_size")
        yield ""

    def _places(self) -> Iterator[str]:
        """Where lanes fetch, and where they read; in row r of a tile chunk c lies at place c XOR r."""
        shape, mask = self.shape, self.shape.chunks - 1
        yield f"// A DMA of all waves fills {shape.dma_rows} rows; a lane fetches the chunk that belongs at its place."
        yield f"const u32 lds_wave = (u32)(u64)(ROTA_LDS char*)memory + wave * {LANES * 16};"
        yield f"const int row = thread / {shape.chunks}, chunk = thread % {shape.chunks} ^ (row & {mask});"
        for name in "kv":
            yield f"const int {name}_fetch = row * {name}_row_bytes + chunk * 16;"
            yield f"const int {name}_tile = {shape.keys} * {name}_row_bytes;  // from a tile to the next"
            yield f"const int {name}_dma = {shape.dma_rows} * {name}_row_bytes;  // from a DMA to the next"
        steps, blocks = len(shape.head_steps), len(shape.head_blocks)
        yield f"ROTA_LDS const char* k_lane[{steps}];"
        yield '_Pragma("unroll")'
        yield (
            f"for (int step = 0; step < {steps}; ++step) k_lane[step] = (ROTA_LDS const char*)memory + lane_row * "
            f"{shape.row_bytes} + ((step * 4 + lane_group) ^ (lane_row & {mask})) * 16;"
        )
        yield "// A lane points at four elements of a key; the read gives it one element of four keys."
        yield "const int key = lane_group * 4 + lane_row / 4;"
        yield f"ROTA_LDS const char* v_lane[{blocks}];"
        yield '_Pragma("unroll")'
        yield (
            f"for (int block = 0; block < {blocks}; ++block) v_lane[block] = (ROTA_LDS const char*)memory + "
            f"{self.ops.start('V')} + key * {shape.row_bytes} + ((block * 2 + lane_row % 4 / 2) ^ (key & {mask})) * 16 "
            "+ lane_row % 2 * 8;"
        )
        yield ""

    def _queries(self) -> Iterator[str]:
        shape = self.shape
        rows, steps = len(shape.row_blocks), len(shape.head_steps)
        yield f"factor q[{rows}][{steps}];"
        yield '_Pragma("unroll")'
        yield f"for (int r = 0; r < {rows}; ++r) {{"
        yield f"  const int own = wave * {shape.rows} + r * {SIDE} + lane_row;"
        yield '  _Pragma("unroll")'
        yield f"  for (int j = 0; j < {steps}; ++j) {{"
        yield (
            "    q[r][j] = __builtin_bit_cast(factor, __builtin_amdgcn_raw_buffer_load_b128(q_bytes, "
            f"(u32)(own * q_row_bytes + (j * {DEPTH} + lane_group * 8) * {ELEMENT_BYTES}), 0, 0));"
        )
        yield "  }"
        yield "}"
        yield ""

    def _state(self) -> Iterator[str]:
        """What is carried from tile to tile: the best score of a row, sums of weights, and the output."""
        rows, blocks = len(self.shape.row_blocks), len(self.shape.head_blocks)
        yield f"float best[{rows}];"
        yield f"part total[{rows}], output[{rows}][{blocks}];"
        yield '_Pragma("unroll")'
        yield f"for (int r = 0; r < {rows}; ++r) {{"
        yield "  best[r] = -__builtin_inff();"
        yield "  total[r] = 0;"
        yield '  _Pragma("unroll")'
        yield f"  for (int h = 0; h < {blocks}; ++h) output[r][h] = 0;"
        yield "}"

    def _carried(self, r: int) -> Iterator[str]:
        shape = self.shape
        yield f"m{r}"
        yield f"l{r}_{len(shape.key_blocks)}"
        yield from (f"o{r}_{h}_{len(shape.key_steps)}" for h in shape.head_blocks)

    @staticmethod
    def _kept(name: str) -> str:
        """The variable that holds a carried value outside the loop."""
        kind, numbers = name[0], name[1:].split("_")
        if kind == "o":
            return f"output[{numbers[0]}][{numbers[1]}]"
        return f"{'best' if kind == 'm' else 'total'}[{numbers[0]}]"

    def _registers(self, carried: list[str]) -> Iterator[str]:
        """Every copy of every register value; those that the first iteration reads begin as they are carried."""
        sizes = {value.name: value.size for value in self.shape.loop().values}
        first = {self._first(name): self._kept(name) for name in carried}
        types = {1: "float", 2: "pair", BLOCK: "part"}
        for name, copies in self.copies.items():
            if name in ("K", "V"):
                continue
            kind = "factor" if name[0] in "kvp" else types[sizes[name]]
            for copy in range(copies):
                place = Place(Space.REGISTER, name, copy)
                begun = f" = {first[place]}" if place in first else ""
                yield f"{kind} {named(place)}{begun};"
        yield "ROTA_WAIT_VM(0)  // Q has come"
        shape = self.shape
        yield " ".join(f'asm volatile("" : "+a"(q[{r}][{j}]));' for r in shape.row_blocks for j in shape.head_steps)
        pins = " ".join(f'asm volatile("" : "+v"({named(place)}));' for place in first)
        yield f'{pins} asm volatile("s_nop 1"); ROTA_FENCE'

    def _first(self, name: str) -> Place:
        """Where the first iteration looks for the value of the one before it."""
        trip = self.program.tiles_per_trip
        return next(
            place
            for phase, k in ((Phase.PROLOGUE, 0), (Phase.KERNEL, trip), (Phase.EPILOGUE, trip))
            for entry in self.program.phase(phase)
            for place, version in entry.effect.wants
            if version.name == name and version.iteration + k == -1
        )

    def _last(self, name: str) -> Place:
        """Where the last iteration leaves a value."""
        outside, trip = self.program.tiles_outside, self.program.tiles_per_trip
        return next(
            place
            for phase, iteration in ((Phase.EPILOGUE, outside - 1 - trip), (Phase.KERNEL, outside - 1))
            for entry in self.program.phase(phase)
            for place, version in entry.effect.makes
            if version.name == name and version.iteration == iteration
        )

    def _phase(self, phase: Phase) -> Iterator[str]:
        indent = "    " if phase is Phase.KERNEL else "  "
        yield f"{indent}// {phase.value.lower()}"
        for number, (entry, issued) in enumerate(zip(self.program.phase(phase), self.issued[phase], strict=True)):
            if states := self.apart.get((phase, number)):
                yield f"{indent}{apart_text(states)}"
            yield f"{indent}{self._statement(entry, issued)}".ljust(_FAR_APART) + comment(self._what(entry))

    def _statement(self, entry: Entry, issued: AttentionStatement | None) -> str:
        return sync_text(self.program, entry) if issued is None else issued.text

    def _what(self, entry: Entry) -> str:
        what = f"{entry.phase.at(entry.time_slot)} {entry.op}"
        why = sync_reason(self.program, entry, self.reasons) if entry.op.is_framework else ""
        return f"{what}: {why}" if why else what
