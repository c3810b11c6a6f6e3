"""A whole attention forward in HIP, for any numbers of queries and keys, and its launcher.

The loop is the schedule's, over tiles of keys that every row of the workgroup sees. Around it: Q, edges by the bounds
of buffer resources, masked tiles at the end of the keys or across the diagonal, and O with its log-sum-exp.
"""

from __future__ import annotations

from collections.abc import Iterator

from rota.compiled.compiled_schedule import CompiledSchedule
from rota.emit.attention.attention_ops import (
    BLOCK,
    DEPTH,
    DMA,
    INSTRUCTION,
    SIDE,
    AttentionOps,
    AttentionStatement,
    ForwardShape,
    forward_shape,
    name_registers,
)
from rota.emit.gemm.hip_gemm import asm_resource, builtin_resource, macros
from rota.emit.gemm.program_form import LoopForm, form_of
from rota.emit.planning import AsmSpacing, plan_schedule
from rota.emit.text import (
    FIRST_MARK,
    LAST_MARK,
    WORDS,
    Template,
    apart_text,
    comment,
    contract,
    describe_entry,
    identifier,
    sync_reasons,
    sync_text,
    unfit,
)
from rota.emit.whole.whole_host import launch_opening
from rota.emit.whole.whole_options import Parameter
from rota.program.entry import Place, Space
from rota.program.kinds import Phase
from rota.program.machine import LANES
from rota.targets.architecture import architecture_of

# The kernel's fixed text is a template. A vector or matrix instruction is opaque to the compiler: it neither moves it
# nor adds to it; one statement for each instruction, since of several results at once the compiler would copy some.
# Registers that only matrix instructions read, those of Q and K, are accumulation registers, of which there are as many
# again. What is before and after the schedule is plain source, which the compiler schedules.

_TEMPLATE = Template("rota.emit", "attention.hip.txt")


def attention_words() -> Iterator[str]:
    """Macros, which use the kernel's types and its `lds_wave`, `scale_bits`, `minus_scale` and `scales`."""
    shared = {name: WORDS.lines(name) for name in ("sync", "meet", "mark", "apart", "first")}
    dma = WORDS.lines("dma", name="ROTA_DMA", instruction=DMA, wave="lds_wave")
    return _TEMPLATE.lines("words", mfma=INSTRUCTION, dma=dma, **shared)


def _across(name: str, joined: str) -> Iterator[str]:
    """One value for the four lanes of a row, which are 32 and 16 apart."""
    values = [f"__builtin_bit_cast(float, (u32)both[{number}])" for number in (0, 1)]
    for lanes in (32, 16):
        yield from _TEMPLATE.lines("across", name=name, lanes=lanes, joined=joined.format(*values))


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
_PARAMETER_LIST = ", ".join(map(str, ATTENTION_PARAMETERS))


def emit_attention(compiled: CompiledSchedule) -> str:
    planned = plan_schedule(compiled)
    kernel = AttentionKernel(planned)
    words = list(attention_words())
    name = identifier(form_of(planned.lowered).symbol, macros(words))
    machine = planned.lowered.machine
    lines = [comment(f"O = softmax(scale Q K^T) V on {machine.name} ({machine.arch})."), *words, ""]
    return "\n".join([*lines, *kernel.lines(name), "", *(f"#undef {macro}" for macro in macros(words)), ""])


def shape_of(compiled: CompiledSchedule) -> ForwardShape | None:
    form = form_of(compiled.lowered)
    return forward_shape(form.loop) if isinstance(form, LoopForm) else None


def attention_shape(compiled: CompiledSchedule) -> ForwardShape:
    """What the schedule computes; T203 if that isn't attention as it can be written."""
    shape = shape_of(compiled)
    if shape is None:
        raise unfit(
            f"{compiled.name} isn't the loop of an attention forward as a ForwardShape declares it",
            fixes=("rota.kernels.attention has shapes whose loops can be written",),
        )
    return shape


class AttentionKernel:
    def __init__(self, compiled: CompiledSchedule) -> None:
        self.compiled = compiled
        self.program = compiled.lowered
        self.shape = attention_shape(compiled)
        self.ops = AttentionOps(self.shape, self.program)
        self.copies = self.ops.copies
        self.reasons = sync_reasons(compiled)
        self.issued: dict[Phase, list[AttentionStatement | None]] = {
            phase: [
                None if entry.op.is_framework else self.ops.translate(entry, phase)
                for entry in self.program.phase(phase)
            ]
            for phase in Phase
        }
        self.architecture = architecture_of(self.program.machine)
        spacing = AsmSpacing(self.architecture, INSTRUCTION)
        issues = {phase: [each and each.issue for each in found] for phase, found in self.issued.items()}
        self.apart = spacing.find_missing(issues)

    def lines(self, name: str) -> Iterator[str]:
        shape = self.shape
        threads, per_simd = shape.waves * LANES, -(-shape.waves // 4)
        return _TEMPLATE.lines(
            "kernel",
            kernel=self,
            shape=shape,
            name=name,
            contract=contract(self.compiled),
            attributes=WORDS.lines("attributes", threads=threads, waves=per_simd),
            parameters=_PARAMETER_LIST,
            unused=" ".join(f"(void){each.name};" for each in ATTENTION_PARAMETERS),
            body=self._body(),
            threads=threads,
        )

    def _body(self) -> Iterator[str]:
        shape = self.shape
        carried = [name for r in shape.row_blocks for name in self._list_carried(r)]
        dmas = (
            f"ROTA_DMA({name}_global, {start + number * shape.dma_rows * shape.row_bytes}, {name}_fetch, "
            f"tile * {name}_tile + {number} * {name}_dma)"
            for name, start in (("k", 0), ("v", self.ops.start("V")))
            for number in shape.loads
        )
        return _TEMPLATE.lines(
            "body",
            kernel=self,
            shape=shape,
            thread=WORDS.lines("thread"),
            last_row=self.rows - 1,
            last_key=shape.keys - 1,
            block_bytes=SIDE * shape.row_bytes,
            step_bytes=DEPTH * shape.row_bytes,
            resources=[*(asm_resource(name, f"{name}_size") for name in "kv"), builtin_resource("q", "q_size")],
            wave_bytes=LANES * 16,
            mask=shape.chunks - 1,
            v_start=self.ops.start("V"),
            first_mark=f"{FIRST_MARK:#x}",
            last_mark=f"{LAST_MARK:#x}",
            registers=self._registers(carried),
            prologue=self._phase(Phase.PROLOGUE),
            loop=self._phase(Phase.KERNEL),
            epilogue=self._phase(Phase.EPILOGUE),
            results=(f"{self._name_outside(name)} = {name_registers(self._last(name))};" for name in carried),
            dmas=dmas,
            most_of_row=_across("most", "__builtin_fmaxf({0}, {1})"),
            sum_of_row=_across("sum", "{0} + {1}"),
        )

    @property
    def rows(self) -> int:
        return self.shape.rows * self.shape.waves

    def _list_carried(self, r: int) -> Iterator[str]:
        shape = self.shape
        yield f"m{r}"
        yield f"l{r}_{len(shape.key_blocks)}"
        yield from (f"o{r}_{h}_{len(shape.key_steps)}" for h in shape.head_blocks)

    @staticmethod
    def _name_outside(name: str) -> str:
        """The variable that holds a carried value outside the loop."""
        kind, numbers = name[0], name[1:].split("_")
        if kind == "o":
            return f"output[{numbers[0]}][{numbers[1]}]"
        return f"{'best' if kind == 'm' else 'total'}[{numbers[0]}]"

    def _registers(self, carried: list[str]) -> Iterator[str]:
        """Every copy of every register value; those that the first iteration reads begin as they are carried."""
        sizes = {value.name: value.size for value in self.shape.loop().values}
        first = {self._first(name): self._name_outside(name) for name in carried}
        types = {1: "float", 2: "pair", BLOCK: "part"}
        for name, copies in self.copies.items():
            if name in ("K", "V"):
                continue
            kind = "factor" if name[0] in "kvp" else types[sizes[name]]
            for copy in range(copies):
                place = Place(Space.REGISTER, name, copy)
                begun = f" = {first[place]}" if place in first else ""
                yield f"{kind} {name_registers(place)}{begun};"
        yield "ROTA_WAIT_VM(0)  // Q has come"
        shape = self.shape
        yield " ".join(f'asm volatile("" : "+a"(q[{r}][{j}]));' for r in shape.row_blocks for j in shape.head_steps)
        pins = " ".join(f'asm volatile("" : "+v"({name_registers(place)}));' for place in first)
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
            text = sync_text(self.program, entry) if issued is None else issued.text
            yield f"{indent}{text}".ljust(_FAR_APART) + comment(describe_entry(self.program, entry, self.reasons))


# The host's side of a whole attention forward.
#
# Every precondition that the kernel rests on has a line in `NAME_check`, which says which one doesn't hold.

_MOST_Y = 65535  # workgroups in the grid's second and third dimension
_MOST_ROWS = 1 << 30
_STARTS = {"heads": "1", "kv_heads": "1", "causal": "0", "shift": "0", "scale": "0"}


def emit_attention_launcher(compiled: CompiledSchedule) -> str:
    planned = plan_schedule(compiled)
    kernel = AttentionKernel(planned)  # what can't be written has no launcher either
    name, shape, head = identifier(form_of(planned.lowered).symbol), kernel.shape, kernel.shape.head
    strides: list[str] = []
    for tensor in "qkvo":
        rows, heads = ("queries", "heads") if tensor in "qo" else ("keys", "kv_heads")
        strides += _TEMPLATE.lines("strides", tensor=tensor, head=head, rows=rows, heads=heads)
    lines = _TEMPLATE.lines(
        "launcher",
        kernel=kernel,
        name=name,
        parameters=_PARAMETER_LIST,
        fields=(f"{each} = {_start(each)};  // {each.what}" for each in ATTENTION_PARAMETERS),
        strides=strides,
        checks=(f'if (!({condition})) return "{words}";' for condition, words in _conditions(kernel)),
        opening=launch_opening(name),
        arguments=", ".join(f"(void*)&p.{each.name}" for each in ATTENTION_PARAMETERS),
        last_row=kernel.rows - 1,
        threads=shape.waves * LANES,
    )
    return "\n".join([*lines, ""])


def _start(parameter: Parameter) -> str:
    return _STARTS.get(parameter.name, "nullptr" if "*" in parameter.type else "0")


def _conditions(kernel: AttentionKernel) -> Iterator[tuple[str, str]]:
    """Conditions in the order in which later ones rest on earlier ones."""
    head = kernel.shape.head
    yield f"p.queries >= 1 && p.queries <= {_MOST_ROWS}", f"queries are 1 to {_MOST_ROWS}"
    yield f"p.keys >= 1 && p.keys <= {_MOST_ROWS}", f"keys are 1 to {_MOST_ROWS}"
    yield f"p.heads >= 1 && p.heads <= {_MOST_Y}", f"heads are 1 to {_MOST_Y}"
    yield f"p.batches >= 1 && p.batches <= {_MOST_Y}", f"batches are 1 to {_MOST_Y}"
    yield ("p.kv_heads >= 1 && p.heads % p.kv_heads == 0", "heads of Q are a multiple of those of K and V")
    yield f"p.shift >= -{_MOST_ROWS} && p.shift <= {_MOST_ROWS}", f"shift is at most {_MOST_ROWS} either way"
    yield "std::isfinite(p.scale) && p.scale > 0", "scale is a number more than 0"
    for letter in "qkvo":
        rows, pointer = ("queries" if letter in "qo" else "keys"), letter.upper()
        yield f"p.{pointer} != nullptr", f"{pointer} is given"
        yield f"(std::uintptr_t)p.{pointer} % 16 == 0", f"{pointer} is aligned to 16 bytes"
        yield (
            f"p.{letter}_row % 8 == 0 && p.{letter}_head % 8 == 0 && p.{letter}_batch % 8 == 0",
            f"strides of {pointer} are multiples of 8 elements",
        )
        yield f"p.{letter}_row >= {head}", f"rows of {pointer} are at least {head} elements apart"
        yield (
            f"p.{letter}_row <= INT_MAX / 2 && (p.{rows} + {kernel.rows}LL) * p.{letter}_row * 2 <= INT_MAX",
            f"the rows of one head of {pointer} take less than 2 GiB",
        )
        for what in ("head", "batch"):
            yield (
                f"p.{letter}_{what} >= 0 && p.{letter}_{what} < (1LL << 44)",
                f"strides of {pointer} are at least 0, and less than 2^44",
            )
    yield "p.L == nullptr || (std::uintptr_t)p.L % 4 == 0", "L is aligned to its elements"
