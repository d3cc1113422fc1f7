"""The text of convolutions as products of weights and patches, which are read where they lie in the image."""

from __future__ import annotations

from evokernel_core.compiler.problems.direct_convolution import ConvolutionAxis, DirectConvolution
from evokernel_core.compiler.shapes.sizes import Extent, product
from evokernel_core.targets.triton.kernels.convolution.convolution_schedule import ConvolutionSchedule
from evokernel_core.targets.triton.kernels.epilogue import Epilogue, EpiloguePrinter, Place, RowIndex
from evokernel_core.targets.triton.kernels.function import (
    JitFunction,
    both,
    divides,
    expression,
    factor,
    masked,
)
from evokernel_core.targets.triton.kernels.precision import argument
from evokernel_core.targets.triton.kernels.text import DTYPES, TritonKernel
from evokernel_core.targets.triton.kernels.tiles import wide

_AXES = ("depth", "row", "column")


def convolution(
    problem: DirectConvolution,
    schedule: ConvolutionSchedule,
    outputs: tuple[str, ...],
    epilogue: Epilogue | None,
    name: str,
) -> TritonKernel:
    """The kernel of a convolution, with what follows it."""
    printer = _ConvolutionPrinter(problem, schedule, JitFunction(name))
    printer.head()
    printer.sums()
    helpers = printer.store(outputs, epilogue)
    function = printer.function
    for key in ("block_m", "block_n", "block_k"):
        function.constant(key.upper(), getattr(schedule, key))
    launch = function.launch(printer.grid(), schedule.warps, schedule.stages)
    return TritonKernel((function.jit_text(),), (launch,), helpers)


class _ConvolutionPrinter:
    def __init__(
        self, problem: DirectConvolution, schedule: ConvolutionSchedule, function: JitFunction
    ) -> None:
        self.problem, self.schedule, self.function = problem, schedule, function
        self.pixels_of_image = product(axis.result for axis in problem.axes)
        self.pixels = problem.batch.times(self.pixels_of_image)
        self.terms = problem.channels.times(Extent(problem.taps))
        self.axes = [
            (name, axis)
            for name, axis in zip(_AXES, problem.axes, strict=True)
            if not (axis.size.is_one and axis.result.is_one and axis.taps == 1 and axis.padding == 0)
        ]

    # -- which results ------------------------------------------------------------------------

    def head(self) -> None:
        """Which results a program has."""
        function, problem, schedule = self.function, self.problem, self.schedule
        add = function.add
        self.x, self.weight = function.tensor(problem.x), function.tensor(problem.weight)
        self.channels = function.number("channels", problem.channels)
        self.outputs = function.number("outputs", problem.outputs)
        self.count = function.number("pixels_in_all", self.pixels)
        self.image_pixels = function.number("pixels_of_image", self.pixels_of_image)
        self.size = function.number("image_size", product(axis.size for axis in problem.axes))
        self.row_mask = "" if divides(schedule.block_m, problem.outputs) else "in_outputs"
        self.column_mask = "" if divides(schedule.block_n, self.pixels) else "in_pixels"
        add(f"tiles_m = tl.cdiv({self.outputs}, BLOCK_M)")
        add("# programs that share patches follow each other")
        add("outputs = program % tiles_m * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]")
        cast = wide(self.pixels, Extent(2))
        if problem.groups == 1:
            add(f"pixels = (program // tiles_m){cast} * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]")
        else:
            add(f"group = program // tiles_m % {problem.groups}")
            add(
                f"pixels = (program // (tiles_m * {problem.groups})){cast} * BLOCK_N"
                " + tl.arange(0, BLOCK_N)[None, :]"
            )
        add(f"image = (pixels // {factor(self.image_pixels)}).to(tl.int64)")
        add(f"pixel = (pixels % {factor(self.image_pixels)}).to(tl.int32)")
        if self.row_mask:
            add(f"in_outputs = outputs < {self.outputs}")
        if self.column_mask:
            add(f"in_pixels = pixels < {self.count}")
        self._first_places()
        channels = f"{problem.groups} * {self.channels}" if problem.groups > 1 else self.channels
        start = f"image * {factor(channels)} * {self.size}"
        if problem.groups > 1:
            start = f"(image * {problem.groups} + group) * {self.channels} * {self.size}"
        add(f"start = {start}")

    def _first_places(self) -> None:
        """Where the first tap of each pixel lies along each axis; transposed, where its last one would."""
        behind: list[str] = []
        for name, axis in reversed(self.axes):
            result = self.function.number(f"{name}_results", axis.result)
            within = f"pixel // {factor(' * '.join(behind))}" if behind else "pixel"
            is_first = (name, axis) == self.axes[0]
            index = within if is_first else f"{within} % {factor(result)}"
            behind.insert(0, result)
            self.function.add(f"first_{name} = {self._first(index, axis)}")

    def _first(self, index: str, axis: ConvolutionAxis) -> str:
        if self.problem.transposed:
            return index if axis.padding == 0 else f"{index} + {axis.padding}"
        text = index if axis.stride == 1 else f"{index} * {axis.stride}"
        return text if axis.padding == 0 else f"{text} - {axis.padding}"

    # -- sums ---------------------------------------------------------------------------------

    def sums(self) -> None:
        """The sums over channels and taps."""
        add = self.function.add
        add("sums = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)")
        if self.schedule.by_taps:
            self._by_taps()
        else:
            self._by_terms()

    def _by_taps(self) -> None:
        taps = self.problem.taps
        if taps == 1:
            self._tap_and_channels("0")
            return
        with self.function.block(f"for tap in range({taps}):"):
            self._tap_and_channels("tap")

    def _tap_and_channels(self, tap: str) -> None:
        """One tap: places and their checks are the same for all channels."""
        function = self.function
        seen = both(self.column_mask, self._places(tap))
        function.add(f"patches = {self.x} + start + {self._place()}")
        with function.block(f"for first in range(0, {self.channels}, BLOCK_K):"):
            whole = divides(self.schedule.block_k, self.problem.channels)
            function.add("channel = first + tl.arange(0, BLOCK_K)")
            behind = "" if whole else f"channel{{}} < {self.channels}"
            self._weights("channel[None, :]", tap, behind.format("[None, :]"))
            cast = wide(self.problem.channels, product(axis.size for axis in self.problem.axes))
            mask = masked(both(behind.format("[:, None]"), seen), "0.0")
            function.add(f"b = tl.load(patches + channel[:, None]{cast} * {self.size}{mask})")
            self._dot()

    def _by_terms(self) -> None:
        function, taps = self.function, self.problem.taps
        terms = function.number("terms", self.terms)
        whole = divides(self.schedule.block_k, self.terms)
        with function.block(f"for first in range(0, {terms}, BLOCK_K):"):
            function.add("term = first + tl.arange(0, BLOCK_K)[:, None]")
            function.add("channel = term" if taps == 1 else f"channel = term // {taps}")
            seen = both(self.column_mask, self._places("0" if taps == 1 else f"term % {taps}"))
            behind = "" if whole else f"term < {terms}"
            function.add("number = first + tl.arange(0, BLOCK_K)[None, :]")
            row_behind = "" if whole else f"number < {terms}"
            if self.problem.transposed:
                tap = "0" if taps == 1 else f"number % {taps}"
                channel = "number" if taps == 1 else f"(number // {taps})"
                self._weights(channel, tap, row_behind)
            else:
                self._weights_of_terms("number", row_behind)
            cast = wide(self.problem.channels, product(axis.size for axis in self.problem.axes))
            mask = masked(both(behind, seen), "0.0")
            function.add(
                f"b = tl.load({self.x} + start + channel{cast} * {self.size} + {self._place()}{mask})"
            )
            self._dot()

    def _weights_of_terms(self, term: str, behind: str) -> None:
        """Weights whose channels and taps lie in the order of terms."""
        output = self._output()
        terms = self.function.number("terms", self.terms)
        mask = masked(both(self.row_mask, behind), "0.0")
        self.function.add(f"a = tl.load({self.weight} + {output} * {terms} + {term}{mask})")

    def _weights(self, channel: str, tap: str, behind: str) -> None:
        problem = self.problem
        mask = masked(both(self.row_mask, behind), "0.0")
        if problem.transposed:
            if problem.groups > 1:
                channel = f"(group * {self.channels} + {channel})"
            at = f"({channel} * {self.outputs} + outputs)"
        else:
            at = f"({self._output()} * {self.channels} + {channel})"
        at = at if problem.taps == 1 else f"{at} * {problem.taps}"
        at = at if tap == "0" else f"{at} + {tap}"
        self.function.add(f"a = tl.load({self.weight} + {at}{mask})")

    def _output(self) -> str:
        return "outputs" if self.problem.groups == 1 else f"(group * {self.outputs} + outputs)"

    def _dot(self) -> None:
        precision = argument(self.schedule.precision, self.problem.dtype)
        self.function.add(f"sums = tl.dot(a, b, sums{precision})")

    def _places(self, tap: str) -> str:
        """The place in the image along each axis for a tap; which of them the image has."""
        checks: list[str] = []
        if tap not in ("0", "tap"):
            self.function.add(f"tap = {tap}")
        behind = 1
        for name, axis in reversed(self.axes):
            at = f"first_{name}"
            if axis.taps > 1:
                number = "tap" if behind == 1 else f"tap // {behind}"
                is_first = all(other.taps == 1 for _, other in self.axes[: self._number(name)])
                number = number if is_first else f"{number} % {axis.taps}"
                step = f"({number})" if " " in number else number
                step = step if axis.dilation == 1 else f"{step} * {axis.dilation}"
                at = f"first_{name} {'-' if self.problem.transposed else '+'} {step}"
                behind *= axis.taps
            self.function.add(f"{name} = {at}")
            checks += self._check(name, axis)
        return both(*checks)

    def _number(self, name: str) -> int:
        return next(place for place, (other, _) in enumerate(self.axes) if other == name)

    def _check(self, name: str, axis: ConvolutionAxis) -> list[str]:
        """Whether an image has a place; transposed, only every stride-th result is one of a tap."""
        size = self.function.number(f"{name}_size", axis.size)
        if not self.problem.transposed:
            return [] if self._stays(axis) else [f"({name} >= 0) & ({name} < {size})"]
        if axis.stride == 1:
            return [f"({name} >= 0) & ({name} < {size})"]
        self.function.add(f"falls_{name} = ({name} >= 0) & ({name} % {axis.stride} == 0)")
        self.function.add(f"{name} = {name} // {axis.stride}")
        return [f"falls_{name} & ({name} < {size})"]

    @staticmethod
    def _stays(axis: ConvolutionAxis) -> bool:
        """Whether all places are the image's: what is read behind the last pixel is masked."""
        return axis.taps == 1 and axis.stride == 1 and axis.padding == 0 and axis.size == axis.result

    def _place(self) -> str:
        """The element of a channel."""
        text = ""
        for name, axis in self.axes:
            size = self.function.number(f"{name}_size", axis.size)
            text = f"{text if text.isidentifier() else f'({text})'} * {size} + {name}" if text else name
        return f"({text})" if text else "pixel * 0"

    # -- results ------------------------------------------------------------------------------

    def store(self, outputs: tuple[str, ...], epilogue: Epilogue | None) -> frozenset[str]:
        """What is done to the sums, and their stores; the helpers that this calls."""
        function, problem = self.function, self.problem
        output = self._output()
        if problem.bias is not None:
            cast = "" if problem.dtype == "float32" else ".to(tl.float32)"
            bias = f"{function.tensor(problem.bias)} + {output}"
            function.add(f"sums += tl.load({bias}{masked(self.row_mask, '0.0')}){cast}")
        all_outputs = f"{problem.groups} * {self.outputs}" if problem.groups > 1 else self.outputs
        row = f"(image * {factor(all_outputs)} + {output})"
        if epilogue is not None:
            rows = (
                RowIndex(problem.batch, "image", self.column_mask),
                RowIndex(problem.outputs.times(Extent(problem.groups)), output, self.row_mask),
            )
            mask = both(self.row_mask, self.column_mask)
            place = Place(row, "pixel", rows, mask, self.column_mask)
            printer = EpiloguePrinter(epilogue, function, place)
            printer.store("sums", outputs)
            return frozenset(printer.helpers)
        value = "sums" if problem.dtype == "float32" else f"sums.to({DTYPES[problem.dtype]})"
        at = f"{function.tensor(outputs[0])} + {row} * {self.image_pixels} + pixel"
        function.add(f"tl.store({at}, {value}{masked(both(self.row_mask, self.column_mask))})")
        return frozenset()

    def grid(self) -> str:
        """Programs of the launch."""
        tiles = f"cdiv({expression(self.problem.outputs)}, {self.schedule.block_m})"
        tiles += f" * cdiv({expression(self.pixels)}, {self.schedule.block_n})"
        return f"{self.problem.groups} * {tiles}"
