"""The kernels of a program: their names, parameters and the cores that each one runs on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import frozen

from evokernel_core.twin.lexer import CppTokenKind, Token, closing_index, end_of, split_commas, tokenize


@frozen
class CoreRatio:
    """Cores of one block: so many cube cores with so many vector cores.

    ``mixed``: a kernel of a MIX type, whose cores may wait for each other.
    """

    cube: int
    vector: int
    mixed: bool = False


VECTOR, CUBE, MIX = CoreRatio(0, 1), CoreRatio(1, 0), CoreRatio(1, 2, mixed=True)

KERNEL_TYPES: Mapping[str, CoreRatio] = {
    "AIV_ONLY": VECTOR,
    "AIC_ONLY": CUBE,
    "MIX_AIV_1_0": CoreRatio(0, 1, mixed=True),
    "MIX_AIC_1_0": CoreRatio(1, 0, mixed=True),
    "MIX_AIC_1_1": CoreRatio(1, 1, mixed=True),
    "MIX_AIC_1_2": MIX,
    "MIX_VECTOR_CORE": VECTOR,
    "VECTORCORE": VECTOR,
}
"""What follows KERNEL_TYPE_ or ASCENDC_TPL_ in the names of kernel types."""

_CUBE_CALLS = frozenset(
    (
        "Mmad",
        "MmadWithSparse",
        "LoadData",
        "LoadDataWithTranspose",
        "LoadDataWithSparse",
        "LoadDataUnzip",
        "Fixpipe",
        "SetFixPipeConfig",
        "LoadImageToLocal",
        "asc_mmad",
        "ASCEND_IS_AIC",
        "CO1",
    )
)
_MATMUL_OBJECTS = frozenset(["Matmul", "MatmulImpl", "BatchMatmul", "REGIST_MATMUL_OBJ"])
_WAITS = frozenset(["SyncAll", "CrossCoreSetFlag", "CrossCoreWaitFlag"])
_VECTOR_CALLS = frozenset(
    (
        "VECIN",
        "VECOUT",
        "VECCALC",
        "TBuf",
        "DataCopyPad",
        "Duplicate",
        "ASCEND_IS_AIV",
        "__ubuf__",
        "UB",
    )
)


@frozen
class DeclaredKernel:
    """One kernel: parameters as written, one string each; its ratio, by tiling key where one differs.

    ``template``: its template parameters as written.
    """

    name: str
    parameters: tuple[str, ...]
    ratio: CoreRatio
    by_key: Mapping[int, CoreRatio]
    defined: bool
    template: tuple[str, ...] = ()


def find_kernels(files: Iterable[Sequence[Token]]) -> dict[str, DeclaredKernel]:
    """The kernels among the active tokens of a program's files, a definition before a declaration."""
    everything = [tuple(tokens) for tokens in files]
    uses = _Uses(everything)
    result: dict[str, DeclaredKernel] = {}
    for tokens in everything:
        for kernel in _kernels(tokens, uses):
            if kernel.name not in result or (kernel.defined and not result[kernel.name].defined):
                result[kernel.name] = kernel
    return result


def _kernels(tokens: Sequence[Token], uses: _Uses) -> Iterator[DeclaredKernel]:
    for index, token in enumerate(tokens):
        if token.text == "__global__":
            kernel = _kernel(tokens, index, uses)
            if kernel is not None:
                yield kernel


def _kernel(tokens: Sequence[Token], index: int, uses: _Uses) -> DeclaredKernel | None:
    opening = _parameter_list(tokens, index)
    if opening is None:
        return None
    closing = closing_index(tokens, opening)
    start = _declaration_start(tokens, index)
    head = tokens[start:opening]
    defined = closing + 1 < len(tokens) and tokens[closing + 1].text == "{"
    body: Sequence[Token] = ()
    if defined:
        body = tokens[closing + 1 : closing_index(tokens, closing + 1) + 1]
    parameters = split_commas(tokens[opening + 1 : closing])
    return DeclaredKernel(
        name=tokens[opening - 1].text,
        parameters=tuple(" ".join(part.text for part in parameter) for parameter in parameters),
        ratio=_qualified(head) or _declared(body, "KERNEL_TASK_TYPE_DEFAULT", 0) or uses.ratio(body),
        by_key=_by_key(body),
        defined=defined,
        template=_template_parameters(head),
    )


def _template_parameters(head: Sequence[Token]) -> tuple[str, ...]:
    texts = [token.text for token in head]
    closings = [index for index, text in enumerate(texts) if text in (">", ">>")]
    if "template" not in texts or not closings:
        return ()
    parameters = split_commas(head[texts.index("template") + 2 : closings[-1]])
    return tuple(" ".join(part.text for part in parameter) for parameter in parameters)


def _parameter_list(tokens: Sequence[Token], index: int) -> int | None:
    """The index of the bracket after the kernel's name: qualifiers with brackets of their own are passed."""
    while index < len(tokens) and tokens[index].text not in ";{}":
        if tokens[index].text == "(":
            if tokens[index - 1].kind is CppTokenKind.NAME and not tokens[index - 1].text.startswith("__"):
                return index
            index = closing_index(tokens, index)
        index += 1
    return None


def _declaration_start(tokens: Sequence[Token], index: int) -> int:
    while (
        index > 0
        and tokens[index - 1].text not in ";{}"
        and tokens[index - 1].kind is not CppTokenKind.DIRECTIVE
    ):
        index -= 1
    return index


def _qualified(head: Sequence[Token]) -> CoreRatio | None:
    """The ratio that a qualifier says."""
    for index, token in enumerate(head):
        if token.text == "__vector__":
            return VECTOR
        if token.text == "__cube__":
            return CUBE
        if token.text == "__mix__":
            numbers = [int(part.text) for part in head[index : index + 6] if part.text.isdigit()]
            return CoreRatio(numbers[0], numbers[1], mixed=True) if len(numbers) > 1 else MIX
    return None


def _declared(body: Sequence[Token], macro: str, position: int) -> CoreRatio | None:
    for arguments in _calls(body, macro):
        if len(arguments) > position:
            return kernel_type(arguments[position][-1].text)
    return None


def kernel_type(name: str) -> CoreRatio | None:
    """The ratio of a kernel type by its name, with or without its prefix."""
    return KERNEL_TYPES.get(name.removeprefix("KERNEL_TYPE_").removeprefix("ASCENDC_TPL_"))


def _by_key(body: Sequence[Token]) -> dict[int, CoreRatio]:
    result: dict[int, CoreRatio] = {}
    for arguments in _calls(body, "KERNEL_TASK_TYPE"):
        ratio = kernel_type(arguments[1][-1].text) if len(arguments) > 1 else None
        key = arguments[0][-1].text.rstrip("uUlL")
        if ratio is not None and key.isdigit():
            result[int(key)] = ratio
    return result


def _calls(body: Sequence[Token], name: str) -> Iterator[list[tuple[Token, ...]]]:
    for index, token in enumerate(body[:-1]):
        if token.text == name and body[index + 1].text == "(":
            yield split_commas(body[index + 2 : closing_index(body, index + 1)])


class _Uses:
    """What a kernel reaches: for each function, class, alias and macro the names that it mentions. Read when
    it is first asked for: most kernels say their type."""

    def __init__(self, files: Iterable[Sequence[Token]]) -> None:
        self.mentions: dict[str, set[str]] = {}
        self.macros: set[str] = set()
        self._unread = list(files)

    def _read(self, tokens: Sequence[Token]) -> None:
        for index, token in enumerate(tokens):
            if token.kind is CppTokenKind.DIRECTIVE:
                self._read_macro(token)
            elif token.text == "using" and index + 2 < len(tokens) and tokens[index + 2].text == "=":
                self._add(tokens[index + 1].text, tokens[index + 3 : _statement_end(tokens, index)])
            elif token.text == "{":
                name = _defined_name(tokens, index)
                if name:
                    self._add(name, tokens[index : end_of(tokens, index)])

    def _read_macro(self, token: Token) -> None:
        words = tokenize(token.text.lstrip("# \t").replace("\\\n", " "))
        if len(words) > 1 and words[0].text == "define":
            self.macros.add(words[1].text)
            self._add(words[1].text, words[2:])

    def _add(self, name: str, tokens: Sequence[Token]) -> None:
        names = {token.text for token in tokens if token.kind is CppTokenKind.NAME}
        self.mentions.setdefault(name, set()).update(names)

    def ratio(self, body: Sequence[Token]) -> CoreRatio:
        """What the compiler infers where nothing is declared: the cores whose instructions are used."""
        while self._unread:
            self._read(self._unread.pop(0))
        reached = self._reached({token.text for token in body if token.kind is CppTokenKind.NAME})
        waits = bool(reached & _WAITS)
        if reached & _MATMUL_OBJECTS and "ASCENDC_CUBE_ONLY" not in self.macros:
            return MIX
        if reached & _CUBE_CALLS or reached & _MATMUL_OBJECTS:
            return MIX if reached & _VECTOR_CALLS else CoreRatio(1, 0, mixed=waits)
        return CoreRatio(0, 1, mixed=waits)

    def _reached(self, names: set[str]) -> set[str]:
        seen: set[str] = set()
        pending = set(names)
        while pending:
            name = pending.pop()
            if name not in seen:
                seen.add(name)
                pending |= self.mentions.get(name, set()) - seen
        return seen


def _statement_end(tokens: Sequence[Token], index: int) -> int:
    while index < len(tokens) and tokens[index].text != ";":
        index += 1
    return index


def _defined_name(tokens: Sequence[Token], opening: int) -> str:
    """The function or class that a brace opens, "" for any other block."""
    index = opening - 1
    while index >= 0 and tokens[index].text not in ";{}" and tokens[index].kind is not CppTokenKind.DIRECTIVE:
        if tokens[index].text in ("class", "struct", "union") and tokens[index - 1].text not in (
            "<",
            ",",
            "enum",
        ):
            return tokens[index + 1].text if tokens[index + 1].kind is CppTokenKind.NAME else ""
        index -= 1
    for position in range(index + 1, opening - 1):
        name, bracket = tokens[position], tokens[position + 1]
        if bracket.text == "(" and name.kind is CppTokenKind.NAME and not name.text.startswith("__"):
            return "" if name.text in ("if", "for", "while", "switch", "catch") else name.text
    return ""
