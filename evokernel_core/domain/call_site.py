"""CallSite: where a kernel is called, what must hold there, and the code that runs where it does not."""

from __future__ import annotations

import hashlib

from attrs import frozen

from evokernel_core.domain.serial import canonical_json


@frozen
class Guard:
    """One condition. ``text`` is Python with ``{}`` for the object at the path ``owner``; without an owner
    it is the whole condition. It may use ``torch`` and ``guards``, a module beside the kernel's package."""

    owner: str
    text: str

    @property
    def condition(self) -> str:
        """For people, and for a call."""
        return self.text.replace("{}", self.owner, 1) if self.owner else self.text


@frozen
class CallSite:
    """``template`` takes the region's place, with ``{holds}``, ``{call}`` and ``{original}`` in it.

    ``original`` is the code that runs where a guard fails: the region's own, as it stands in the file.
    ``bindings`` (name and expression) are operands that the kernel's call computes. Where the kernel takes
    one of them not, ``rest`` goes on from there: statements that return the region's value, and pop each
    operand from a list under its name. ``carried`` are names of the function that these statements read
    beside ``parameters``, the names that guards and operands use. ``asks_late``: to compute an operand may
    change what guards ask, which is then asked behind it. ``module_names`` are the globals of the file that
    guards alone use. ``code`` has the digest of each further function that the kernel stands for, by
    ``file:qualified.name`` below the folder that imports start from. ``enclosed``: the region is an
    expression that stands right between two parentheses. ``default_dtype`` is PyTorch's, under which the code
    was traced and may be replaced. ``whole_numbers`` are the expressions of operands that are Python ints;
    other numbers are floats. ``warned``: the categories and texts of what PyTorch warns of when the code
    runs, which a call says as well.

    A site with bindings and without a ``rest`` is of an earlier version: its guard computed the operands, and
    ``original`` reads their names.
    """

    template: str
    original: str
    bindings: tuple[tuple[str, str], ...] = ()
    parameters: tuple[str, ...] = ()
    guards: tuple[Guard, ...] = ()
    code: tuple[tuple[str, str], ...] = ()
    enclosed: bool = False
    module_names: tuple[str, ...] = ()
    default_dtype: str = "float32"
    rest: str = ""
    carried: tuple[str, ...] = ()
    asks_late: bool = False
    whole_numbers: tuple[str, ...] = ()
    warned: tuple[tuple[str, str], ...] = ()

    @property
    def asked(self) -> tuple[str, ...]:
        """The names that guards are passed, before an operand is computed."""
        computed = dict(self.bindings)
        return tuple(name for name in self.parameters if name not in computed)

    @property
    def given(self) -> tuple[str, ...]:
        """The expressions that the kernel's call is passed; the computed operands come last."""
        return (*self.asked, *self.carried, *(text for _, text in self.bindings))

    @property
    def digest(self) -> str:
        """Alike for call sites whose guards and operands are."""
        parts = [self.original, self.parameters, self.module_names, self.guards, self.code]
        parts += [] if self.default_dtype == "float32" else [self.default_dtype]
        parts += [given for given in (self.whole_numbers, self.warned) if given]
        text = canonical_json(parts)
        return hashlib.sha256(text.encode()).hexdigest()
