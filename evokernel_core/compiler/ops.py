"""The dialect: our own operations, into which rewrites turn ATen where a kernel computes more than one
ATen op.

Each is declared once: its schema, the rule for its results, and what it costs at least. Rewrites write
these ops, families take them, and neither knows the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from attrs import evolve, field, frozen

from evokernel_core.compiler.shapes.sizes import times
from evokernel_core.domain.graph import Arg, Graph, Node, SymbolicInt, ValueRef, literal
from evokernel_core.domain.tensor import Dim, TensorSpec

Sizes = Mapping[str, int]
Specs = Callable[[ValueRef], TensorSpec]

FLOATS = ("float32", "float16", "bfloat16")
"""What the kernels of most ops compute with."""
GATES: Mapping[str, int] = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
"""Kinds of recurrent layers, and how many sums of products each hidden unit of them takes."""
BAG_MODES = ("sum", "mean", "max")
LAST = "last"
"""Of several values that are put in one place the last one stays."""
SCATTER_REDUCTIONS = ("add", "mul", "max", "min")
SCATTER_TYPES = ("float32", "int32", "int64")
"""What is combined with what is there; int64 only element by element."""
SCANS = ("sum", "prod", "max", "min", "logaddexp")
NEAREST = ("nearest", "nearest_exact")
"""Kinds of resizing that choose an element and weight none."""
RESIZE_KINDS = (*NEAREST, "linear", "cubic", "smooth_linear", "smooth_cubic")
"""The smooth ones are antialiased: their kernels are as wide as a result."""
SAMPLE_MODES = ("bilinear", "nearest", "bicubic")
SAMPLE_PADDINGS = ("zeros", "border", "reflection")
"""Modes and paddings of sampling, in the order of PyTorch's numbers."""
INTEGER_REDUCTIONS = ("sum", "prod", "max", "min")
REDUCED_INTEGERS = ("int64", "int32")


def _is_tensor(arg: Arg) -> bool:
    return isinstance(arg, ValueRef)


def _is_int(arg: Arg) -> bool:
    return isinstance(arg, int) and not isinstance(arg, bool)


def _is_size(arg: Arg) -> bool:
    return _is_int(arg) or isinstance(arg, SymbolicInt)


_TYPES: Mapping[str, Callable[[Arg], bool]] = {
    "Tensor": _is_tensor,
    "int": _is_int,
    "SymInt": _is_size,
    "bool": lambda arg: isinstance(arg, bool),
    "float": lambda arg: isinstance(arg, float),
    "str": lambda arg: isinstance(arg, str),
}


@frozen
class Parameter:
    """One parameter of a schema, as PyTorch writes it: ``Tensor? bias=None``, ``int[] stride``."""

    name: str
    type: str
    default: Arg
    required: bool

    @staticmethod
    def of(text: str) -> Parameter:
        declared, given, default = text.strip().partition("=")
        type_, name = declared.split()
        value: Arg = None if default in ("", "None") else int(default)
        return Parameter(name, type_, value, not given)

    def takes(self, arg: Arg) -> bool:
        """Whether an argument is of the parameter's type."""
        type_ = self.type.removesuffix("?")
        if type_ != self.type and arg is None:
            return True
        if type_.endswith("[]"):
            return isinstance(arg, tuple) and all(map(_TYPES[type_.removesuffix("[]")], arg))
        return _TYPES[type_](arg)


@frozen
class OpCall:
    """The arguments of one call by the names of its schema. ``results``: what the node that is called says
    of its results, from which rules take the sizes that the caller chooses."""

    arguments: Mapping[str, Arg]
    spec: Specs
    results: tuple[TensorSpec, ...] = ()

    def __getitem__(self, name: str) -> Arg:
        return self.arguments[name]

    def number(self, name: str) -> int:
        return literal(self.arguments[name])

    def tensor(self, name: str) -> TensorSpec:
        ref = self.arguments[name]
        assert isinstance(ref, ValueRef)
        return self.spec(ref)

    def tensors(self, name: str) -> tuple[TensorSpec, ...]:
        refs = self.arguments[name]
        assert isinstance(refs, tuple)
        return tuple(self.spec(ref) for ref in refs if isinstance(ref, ValueRef))

    def has(self, name: str) -> bool:
        """Whether an optional argument is given."""
        return self.arguments[name] is not None


Rule = Callable[[OpCall], tuple[TensorSpec, ...]]
Count = Callable[[OpCall, Sizes], int]


def _no_work(call: OpCall, sizes: Sizes) -> int:
    return 0


@frozen
class Op:
    """One operation of the dialect.

    ``schema`` is as in PyTorch, and arguments are given by position. ``rule`` gives the specs of the results.
    ``category`` is one of those of a family's ops: ``kernel``, ``pointwise``. ``work`` counts operations at
    least: of multiply-accumulates on the cube cores where ``on_cube`` (two each), otherwise of simple
    instructions on vector lanes (one each). ``chosen`` names the operand of which only what indices choose is
    read, ``choices`` the elements that they choose.
    """

    name: str
    schema: str
    rule: Rule = field(eq=False)
    category: str = "kernel"
    work: Count = field(default=_no_work, eq=False)
    on_cube: bool = False
    chosen: str = ""
    choices: Count = field(default=_no_work, eq=False)
    parameters: tuple[Parameter, ...] = field(init=False, eq=False)

    @parameters.default
    def _parsed(self) -> tuple[Parameter, ...]:
        return tuple(map(Parameter.of, self.schema.split(",")))

    def bound(self, args: tuple[Arg, ...], spec: Specs, results: tuple[TensorSpec, ...] = ()) -> OpCall:
        """A call with these arguments. Raises TypeError where they do not fit the schema: a rewrite is
        wrong then, whatever the model."""
        missing = self.parameters[len(args) :]
        if len(args) > len(self.parameters) or any(item.required for item in missing):
            raise TypeError(f"{self.name}({self.schema}) is called with {len(args)} arguments.")
        for parameter, arg in zip(self.parameters, args, strict=False):
            if not parameter.takes(arg):
                raise TypeError(f"{self.name}: {parameter.name} is no {parameter.type}: {arg!r}.")
        given = dict(zip((parameter.name for parameter in self.parameters), args, strict=False))
        return OpCall({item.name: item.default for item in missing} | given, spec, results)

    def call(self, node: Node, spec: Specs) -> OpCall:
        """The call that a node is. Raises TypeError as ``bound``."""
        return self.bound(node.args, spec, node.outputs)

    def flops(self, node: Node, graph: Graph, sizes: Sizes) -> int:
        """Operations that a node takes at least; a multiply-accumulate is two."""
        return self.work(self.call(node, graph.spec), sizes) * (2 if self.on_cube else 1)

    def read_bytes(self, node: Node, ref: ValueRef, graph: Graph, sizes: Sizes) -> int:
        """Bytes of an operand that a node cannot do without. Indices are taken as evenly spread: of E
        elements n choices then reach E (1 - exp(-n / E))."""
        call = self.call(node, graph.spec)
        whole = graph.spec(ref).nbytes(sizes)
        if not self.chosen or call[self.chosen] != ref or whole == 0:
            return whole
        elements = _elements(graph.spec(ref), sizes)
        reached = math.ceil(elements * -math.expm1(-self.choices(call, sizes) / elements))
        return whole // elements * reached


def _elements(spec: TensorSpec, sizes: Sizes) -> int:
    return math.prod(spec.sizes(sizes))


def _result_elements(call: OpCall, sizes: Sizes) -> int:
    return _elements(call.results[0], sizes)


def _operand_elements(name: str) -> Count:
    return lambda call, sizes: _elements(call.tensor(name), sizes)


def _as_operand(name: str) -> Rule:
    """One result like an operand."""
    return lambda call: (evolve(call.tensor(name), contiguous=True),)


def _minus_one(dim: Dim) -> Dim:
    return dim - 1 if isinstance(dim, int) else f"({dim}) - 1"


def _as_dim(arg: Arg) -> Dim:
    return arg.expression if isinstance(arg, SymbolicInt) else literal(arg)


# -- what is made ----------------------------------------------------------------------------------


SIZE = Op(
    "evokernel.size.default",
    "SymInt size",
    lambda call: (TensorSpec((), "float32"),),
    category="pointwise",
)
"""A size as a number of the graph."""


def _iota(call: OpCall) -> tuple[TensorSpec, ...]:
    (made,) = call.results
    return (TensorSpec(made.shape[:1], made.dtype),)


IOTA = Op(
    "evokernel.iota.default", f"int start, int step, int most={2**31 - 1}", _iota, work=_result_elements
)
"""The elements of its one dimension, whose size and dtype the caller chooses, are start, start + step, and so
on; a kernel refuses sizes for which they go beyond ``most``."""


# -- what indices choose ---------------------------------------------------------------------------


def _gathered(call: OpCall) -> tuple[TensorSpec, ...]:
    source, index = call.tensor("source"), call.tensors("indices")[0]
    return (TensorSpec((source.shape[0], index.shape[1], *source.shape[-2:]), source.dtype),)


GATHER = Op(
    "evokernel.take.default",
    "Tensor source, Tensor[] indices, bool wraps",
    _gathered,
    chosen="source",
    choices=_result_elements,
)
"""Of source [outer, size of each index, lanes, run] indices of [outer or 1, count, lanes] choose [outer,
count, lanes, run]; ``wraps`` says that negative indices count from the end."""


def _combined(call: OpCall, sizes: Sizes) -> int:
    return 0 if call["kind"] == LAST else _elements(call.tensor("values"), sizes)


SCATTER = Op(
    "evokernel.put.default",
    "Tensor source, Tensor[] indices, Tensor values, str kind, bool wraps",
    _as_operand("source"),
    work=_combined,
)
"""A copy of source [outer, size of each index, run] into which values [outer, count, run] are put at indices
[outer or 1, count]; ``kind`` is LAST or one of SCATTER_REDUCTIONS, ``wraps``: negative indices count from the
end."""


def _scattered_parts(call: OpCall) -> tuple[TensorSpec, ...]:
    values, sizes = call.tensor("values"), call["sizes"]
    assert isinstance(sizes, tuple)
    shape = (call.number("parts"), values.shape[0], *map(_as_dim, sizes), values.shape[-1])
    return (TensorSpec(shape, values.dtype),)


SCATTER_PARTS = Op(
    "evokernel.put_parts.default",
    "SymInt[] sizes, Tensor[] indices, Tensor values, str kind, bool wraps, int parts",
    _scattered_parts,
    work=_combined,
)
"""[parts, outer, size of each index, run] of float32, each with the values of its share of the entries put
into what changes nothing; sums and extremes only."""


def _bags(call: OpCall) -> tuple[TensorSpec, ...]:
    table, bags = call.tensor("table"), call.tensor("offsets" if call.has("offsets") else "indices").shape[0]
    if call.has("offsets") and call["whole"]:
        bags = _minus_one(bags)
    return (TensorSpec((bags, table.shape[1]), table.dtype),)


def _bagged(call: OpCall, sizes: Sizes) -> int:
    return _elements(call.tensor("indices"), sizes) * call.tensor("table").sizes(sizes)[1]


EMBEDDING_BAG = Op(
    "evokernel.bag.default",
    "Tensor table, Tensor indices, Tensor? offsets, Tensor? weights, str mode, int padding, bool whole",
    _bags,
    work=lambda call, sizes: _bagged(call, sizes) * (2 if call.has("weights") else 1),
    chosen="table",
    choices=_bagged,
)
"""Rows of table [rows, run], combined to [bags, run]. Indices are [bags, length] without offsets, else
[count]; ``weights`` are float32 and as many as indices; ``mode`` is one of BAG_MODES; rows of index
``padding``, -1 for none, do not count; ``whole``: the last offset is where the last bag ends. A bag of
no rows is zero."""


# -- what is interpolated --------------------------------------------------------------------------


def _resized(call: OpCall) -> tuple[TensorSpec, ...]:
    x, made = call.tensor("x"), call.results[0].shape
    return (TensorSpec((x.shape[0], *made[1:]), x.dtype),)


def _weighted(call: OpCall, sizes: Sizes) -> int:
    return _elements(call.results[0], sizes) * (1 if call["kind"] in NEAREST else 2)


def _tapped(call: OpCall, sizes: Sizes) -> int:
    """Elements that results weigh; antialiased ones all there are, many times."""
    taps = {"nearest": 1, "nearest_exact": 1, "linear": 4, "cubic": 16}.get(str(call["kind"]))
    return _elements(call.results[0], sizes) * taps if taps else 64 * _elements(call.tensor("x"), sizes)


RESIZE = Op(
    "evokernel.resize.default",
    "Tensor x, str kind, bool aligned, float row_step, float column_step",
    _resized,
    work=_weighted,
    chosen="x",
    choices=_tapped,
)
"""Planes x [planes, rows, columns] resized to the rows and columns that the caller says, with one of
RESIZE_KINDS, as ``torch.nn.functional.interpolate`` does. A result steps over so many rows or columns of
the source; a dimension whose size stays and whose step is one is left as it is. All sizes but that of the
planes are known."""


def _sampled(call: OpCall) -> tuple[TensorSpec, ...]:
    x = call.tensor("x")
    return (TensorSpec((*x.shape[:2], call.tensor("grid").shape[1]), x.dtype),)


def _around(call: OpCall, sizes: Sizes) -> int:
    return _elements(call.results[0], sizes) * {"nearest": 1, "bilinear": 4}.get(str(call["mode"]), 16)


GRID_SAMPLE = Op(
    "evokernel.grid_sample.default",
    "Tensor x, Tensor grid, str mode, str padding, bool aligned",
    _sampled,
    work=_around,
    chosen="x",
    choices=_around,
)
"""x [images, channels, rows, columns] at places of grid [images, count, 2], float32, whose numbers say column
and row between -1 and 1, as ``torch.nn.functional.grid_sample`` takes them: [images, channels, count].
``mode`` is one of SAMPLE_MODES, ``padding`` one of SAMPLE_PADDINGS; rows and columns are known."""


# -- along rows ------------------------------------------------------------------------------------


def _sorted(call: OpCall) -> tuple[TensorSpec, ...]:
    rows, keep = call.tensor("x").shape[0], call.results[0].shape[1]
    return (TensorSpec((rows, keep), call.tensor("x").dtype), TensorSpec((rows, keep), "int64"))


SORT = Op(
    "evokernel.sort.default",
    "Tensor x, Tensor? indices, bool descending, int parts",
    _sorted,
    work=_operand_elements("x"),
)
"""The first elements of each sorted row of ``x`` [rows, columns], as many as the caller says, and where
they were, int64. Equal elements stay in order, and NaN is greater than any number. An element's place
is its column, or what ``indices`` of x's shape say; a row may be one of ``parts`` that follow each
other in a longer one."""

SCAN = Op(
    "evokernel.scan.default",
    "Tensor x, int dim, str op, bool reverse, bool exclusive, Tensor? mask",
    _as_operand("x"),
    work=_result_elements,
)
"""Each element combined with all before it along ``dim`` by one of SCANS; from the end where ``reverse``,
without itself where ``exclusive``. ``mask``, truth values of x's shape, is multiplied with x."""

REDUCE_INTEGERS = Op(
    "evokernel.fold_integers.default",
    "Tensor x, str kind",
    lambda call: (TensorSpec(call.tensor("x").shape[:-1], call.tensor("x").dtype),),
    work=_operand_elements("x"),
)
"""The last dimension combined by one of INTEGER_REDUCTIONS, exactly; it goes."""

SCAN_INTEGERS = Op(
    "evokernel.running_integers.default", "Tensor x, str kind", _as_operand("x"), work=_result_elements
)
"""The same of every element and those before it."""


# -- products --------------------------------------------------------------------------------------


def _partial_products(call: OpCall) -> tuple[TensorSpec, ...]:
    rows, columns = call.tensor("a").shape[0], call.tensor("b").shape[1]
    return (TensorSpec((call.number("parts"), rows, columns), "float32"),)


def _multiplied(call: OpCall, sizes: Sizes) -> int:
    return math.prod(call.tensor("a").sizes(sizes)) * call.tensor("b").sizes(sizes)[1]


SPLIT_K_MM = Op(
    "evokernel.split_mm.default",
    "Tensor a, Tensor b, int parts",
    _partial_products,
    work=_multiplied,
    on_cube=True,
)
"""``parts`` float32 matrices whose sum is the product of a [m, k] and b [k, n]."""


def _convolved(call: OpCall) -> tuple[TensorSpec, ...]:
    x, weight, made = call.tensor("x"), call.tensor("weight"), call.results[0].shape
    sizes: list[Dim] = list(made[2:])
    if not call.has("before"):
        kernel = weight.shape[1:2] if call["rows_first"] else weight.shape[2:3]
        if len(sizes) == 3:
            kernel = (weight.shape[3], weight.shape[1]) if call["rows_first"] else weight.shape[2:4]
        for place, taps in enumerate(kernel if len(sizes) > 1 else ()):
            sizes[place] = _steps(x.shape[2 + place], taps, call, place)
    return (TensorSpec((x.shape[0], weight.shape[0], *sizes), x.dtype),)


def _steps(size: Dim, taps: Dim, call: OpCall, place: int) -> Dim:
    """Places of a kernel along one dimension that a convolution frames with zeros beforehand."""
    strides, dilations = call["stride"], call["dilation"]
    assert isinstance(strides, tuple) and isinstance(dilations, tuple)
    reach = f"(({taps}) - 1) * {literal(dilations[place])} + 1"
    return f"(({size}) - ({reach})) // {literal(strides[place])} + 1"


def _taps(call: OpCall, sizes: Sizes) -> int:
    """Multiply-accumulates of a convolution, zeros of padding counted."""
    return _elements(call.results[0], sizes) * math.prod(call.tensor("weight").sizes(sizes)[1:])


CONVOLUTION = Op(
    "evokernel.convolution.default",
    "Tensor x, Tensor weight, int[] stride, int[] dilation, int groups, int phases, bool rows_first,"
    " Tensor? bias, int[]? before=None",
    _convolved,
    work=_taps,
    on_cube=True,
)
"""A convolution without padding.

x is [batch, groups * channels, *sizes], weight [groups * outputs, channels, *kernel], with one to three
spatial dimensions. With ``rows_first`` the kernel's rows come before the channels: weight is
[groups * outputs, height, channels, *depth, width]. ``bias`` [groups * outputs] is None where none is
added.

Along the last dimension the kernel steps by single elements: a larger step is the number of ``phases`` into
which that dimension is cut, x being [batch, groups * channels, *sizes[:-1], phases, width] with element
``w`` of a row at [w % phases, w // phases]. Rows of x may be longer than what is read: the caller says how
long those of the result are.

With ``before``, zeros in front of each spatial dimension, x is the image itself, [batch, groups * channels,
*sizes], without zeros and phases: the kernel frames it, as SPACE_TO_DEPTH would; not with rows_first. The
caller then says all sizes of the result.
"""


def _each_channel(call: OpCall) -> tuple[TensorSpec, ...]:
    x, weight, made = call.tensor("x"), call.tensor("weight"), call.results[0].shape
    return (TensorSpec((x.shape[0], weight.shape[0], *made[2:]), x.dtype),)


DEPTHWISE = Op(
    "evokernel.depthwise.default",
    "Tensor x, Tensor weight, Tensor? bias, int[] stride, int[] before, int[] dilation, bool transposed,"
    " int[] output_padding, int groups",
    _each_channel,
    work=_taps,
)
"""A depthwise convolution with zeros ``before`` the input whose result is as long as the caller says,
whatever zeros behind the input that takes."""


def _recurred(call: OpCall) -> tuple[TensorSpec, ...]:
    first, weights = call.results[0].shape, call.tensors("weights")
    hidden, dtype = weights[0].shape[1], weights[0].dtype
    width = hidden if call["upper"] else times((hidden, len(call.tensors("inputs"))))
    state = TensorSpec((len(weights), first[0 if call["batch_first"] else 1], hidden), dtype)
    ends = 2 if call["kind"] == "lstm" else 1
    return (TensorSpec((*first[:2], width), dtype), *(state,) * ends)


def _recurred_products(call: OpCall, sizes: Sizes) -> int:
    steps = math.prod(call.results[0].sizes(sizes)[:2])
    return steps * sum(
        _elements(tensor, sizes) for key in ("weights", "upper") for tensor in call.tensors(key)
    )


RECURRENCE = Op(
    "evokernel.recurrence.default",
    "str kind, Tensor[] inputs, Tensor[] weights, Tensor[] input_biases, Tensor[] hidden_biases,"
    " Tensor? hidden, Tensor? cell, int first, bool batch_first, Tensor[] upper",
    _recurred,
    work=_recurred_products,
    on_cube=True,
)
"""Chains of states: the directions of one layer, or layers above each other.

``kind`` is one of GATES. For each direction (of layers: for the lowest one) ``inputs`` are the projected
ones [steps * batch, gates * hidden]; for each chain there are the weights of the hidden states [gates *
hidden, hidden] and the biases of both products (none, or one for each chain). ``hidden`` and ``cell`` are
the states before the first step ([any, batch, hidden], None for zeros), ``first`` the place of the first
chain in those; ``batch_first`` says whether inputs and outputs go batch by batch, and ``upper`` are the
weights [gates * hidden, hidden] by which each layer above the lowest one takes the states of the one below
(of directions: none). The second direction goes from the last step to the first. Results: the states of
all steps (of the topmost layer), whose steps and batch the caller says, the last hidden states of all
chains, and of LSTM the last cell states.
"""

COMPLEX_MULTIPLY = Op(
    "evokernel.paired_product.default",
    "Tensor x, Tensor w",
    _as_operand("x"),
    work=lambda call, sizes: 3 * _result_elements(call, sizes),
)
"""The products of x [*sizes, 2] and w [*sizes, 2], whose sizes broadcast to those of x, in float32."""


# -- layouts ---------------------------------------------------------------------------------------


def _joined(call: OpCall) -> tuple[TensorSpec, ...]:
    tensors, dim = call.tensors("tensors"), call.number("dim")
    shape = list(tensors[0].shape)
    shape[dim] = times((len(tensors), shape[dim]))
    return (TensorSpec(tuple(shape), tensors[0].dtype),)


INTERLEAVE = Op("evokernel.interleave.default", "Tensor[] tensors, int dim", _joined)
"""Tensors of one shape joined along ``dim``, as ``aten.cat`` does."""


def _framed(call: OpCall) -> tuple[TensorSpec, ...]:
    x, made, phases = call.tensor("x"), call.results[0].shape, call.number("phases")
    last = (phases, made[-1]) if phases > 1 else made[-1:]
    return (TensorSpec((*x.shape[:2], *made[2 : x.rank - 1], *last), x.dtype),)


SPACE_TO_DEPTH = Op("evokernel.phases.default", "Tensor x, int[] before, int phases", _framed)
"""x [batch, channels, *sizes] in the middle of zeros.

``before`` zeros lie in front along each spatial dimension; the sizes that the caller gives the result say
how many follow. With several ``phases`` the result is [batch, channels, *sizes[:-1], phases, width]:
element ``w`` of a row lies at [w % phases, w // phases]. Its last size is a multiple of
``limits.WIDTH_UNIT``, or whatever a reader of whole rows asks for.
"""


DIALECT: Mapping[str, Op] = {
    op.name: op
    for op in (
        *(
            SIZE,
            IOTA,
            GATHER,
            SCATTER,
            SCATTER_PARTS,
            EMBEDDING_BAG,
            RESIZE,
            GRID_SAMPLE,
            SORT,
            SCAN,
            REDUCE_INTEGERS,
            SCAN_INTEGERS,
        ),
        *(SPLIT_K_MM, CONVOLUTION, DEPTHWISE, RECURRENCE, COMPLEX_MULTIPLY, INTERLEAVE, SPACE_TO_DEPTH),
    )
}
"""Every op of ours, by name."""
PREFIX = "evokernel."


def categories(*ops: Op) -> dict[str, str]:
    """The names of ops with their categories, as families say what they compute."""
    return {op.name: op.category for op in ops}
