"""``make words``: the catalogue of all that the language server says, with what is new to be translated.

    python -m release.words

What is said stands in the sources as templates: the first argument of ``_``, ``many`` and ``marked`` in the
server, of a Sentence anywhere, and of an error of the tree. The twin's library says printf formats; steps of
refinement are named where kernel families yield them.
"""

from __future__ import annotations

import ast
import io
import re
import tomllib
from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import cache
from pathlib import Path

from attrs import frozen
from babel.messages.catalog import Catalog
from babel.messages.catalog import Message as Entry
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

from evokernel_core.compiler.schedule import Schedule
from evokernel_core.domain import descriptor
from evokernel_core.domain.sentence import Sentence
from evokernel_core.targets.ascendc.kernels.family import Cores
from evokernel_core.targets.ascendc.kernels.registry import FAMILIES as ASCENDC
from evokernel_core.targets.triton.kernels.registry import FAMILIES as TRITON
from evokernel_core.twin.hazards import hazard_rules
from evokernel_core.twin.page_words import page_words
from evokernel_core.twin.said import template_of

ROOT = Path(__file__).parents[1]
SOURCES = ("server/evokernel_server", "evokernel_core")
CATALOGUE = ROOT / "server/evokernel_server/locales/zh_CN/LC_MESSAGES/evokernel.po"
ENGLISH = tuple(
    f"evokernel_core/{place}"
    for place in (
        *("cli/", "report/", "synthesis/steps.py", "synthesis/suite.py", "memory/packs.py"),
        *("capture/observe.py", "twin/apart.py", "twin/bare.py", "twin/fills.py", "twin/framework.py"),
        "twin/hazards.py",
        *("hardware/ascend/api/", "twin/operators/", "twin/program.py", "twin/sources.py"),
        *("targets/ascendc/first_run/", "verifier/queue", "verifier/schema.py", "verifier/service"),
        *("verifier/serving/", "verifier/workers.py"),
    )
)
"""What is said on the command line, to coding agents, by the verifier's HTTP service and of our own tables
alone."""
_FUNCTIONS: Mapping[str, tuple[int, ...]] = {
    "_": (1,),
    "many": (1, 2),
    "marked": (1,),
    "refuse": (1,),
}
_TEMPLATE = "template"
"""The parameter of a sentence, and of an error's ``__init__``."""

TARGETS = "evokernel_core/targets"
"""Each target has a folder in here, all of whose families are imported above: their schedules name moves."""
AUTHOR = f"{TARGETS}/ascendc"
LIBRARY = ROOT / "evokernel_core/twin/src"
_UNSAID = ("client/", "host/", "launcher/", "glue.cpp")
"""Parts of the library that report to programs with a main of their own."""
_FORMATS: Mapping[str, int] = {"ReportError": 2, "ReportWarning": 2, "Fail": 1, "Wording": 0, "Word": 0}
"""What is called with a printf format in the library, and with which of its arguments."""
_REPORT = re.compile(rf"\b({'|'.join(_FORMATS)})(?:\)| \w+)?\(")
_LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"|\'(?:[^\'\\]|\\.)+\'')

Message = str | tuple[str, ...]


def sources() -> Iterator[Path]:
    """The files in which something is said to a person in an editor."""
    for folder in SOURCES:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if not path.relative_to(ROOT).as_posix().startswith(ENGLISH):
                yield path


@frozen
class _Class:
    """A class by its template's place among its own arguments (None: it has the arguments of its bases)."""

    name: str
    place: int | None
    bases: tuple[str, ...]


@frozen
class Parsed:
    """What can say something in a file of Python, from its first line to its last."""

    classes: tuple[_Class, ...]
    calls: tuple[ast.Call, ...]
    steps: tuple[ast.FunctionDef, ...]


@cache
def parsed(path: Path) -> Parsed:
    """A file's classes, the calls of names that may take a template, and the functions that yield steps."""
    nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
    found = [node for node in nodes if isinstance(node, ast.Call) and may_say(callee(node))]
    return Parsed(
        tuple(_class_of(node) for node in nodes if isinstance(node, ast.ClassDef)),
        tuple(sorted(found, key=lambda node: (node.lineno, node.col_offset))),
        tuple(node for node in nodes if isinstance(node, ast.FunctionDef) and is_of_steps(node)),
    )


def callee(call: ast.Call) -> str:
    """The last name of what is called."""
    return str(getattr(call.func, "id", getattr(call.func, "attr", "")))


def may_say(name: str) -> bool:
    """Whether a name is one of the functions that take templates, or one of a class."""
    return name in _FUNCTIONS or name.lstrip("_")[:1].isupper()


def _class_of(node: ast.ClassDef) -> _Class:
    bases = tuple(base.id for base in node.bases if isinstance(base, ast.Name) and base.id != node.name)
    for item in node.body:
        if isinstance(item, ast.FunctionDef) and item.name in {"__init__", "__new__"}:
            names = [given.arg for given in (*item.args.posonlyargs, *item.args.args)]
            return _Class(node.name, names.index(_TEMPLATE) if _TEMPLATE in names else 0, bases)
    return _Class(node.name, None, bases)


@cache
def keywords() -> dict[str, tuple[int, ...]]:
    """What is called with a template, by its name, and with which of its arguments (from 1). A class says so
    by a parameter of its own or of a class that it derives from."""
    paths = (path for folder in SOURCES for path in (ROOT / folder).rglob("*.py"))
    found = {item.name: item for path in paths for item in parsed(path).classes}
    places = {name: _place(item, found) for name, item in found.items()}
    return {**_FUNCTIONS, **{name: (place,) for name, place in places.items() if place}}


def _place(item: _Class, known: Mapping[str, _Class]) -> int:
    """The place of a class's template among its arguments, 0 where it takes none."""
    if item.place is not None:
        return item.place
    bases = (known[base] for base in item.bases if base in known)
    return next((place for base in bases if (place := _place(base, known))), 0)


def calls(path: Path, wanted: Mapping[str, tuple[int, ...]]) -> Iterator[tuple[ast.expr, ...]]:
    """What stands for templates in the calls of a file, from its first line to its last; calls that are given
    fewer arguments are none."""
    for call in parsed(path).calls:
        places = wanted.get(callee(call), ())
        if places and len(call.args) >= max(places):
            yield tuple(call.args[place - 1] for place in places)


def said() -> dict[Message, None]:
    """Every template that may reach a person, in the order of the sources."""
    wanted, found = keywords(), []
    for path in sources():
        for templates in calls(path, wanted):
            texts = tuple(item.value for item in templates if isinstance(item, ast.Constant))
            if len(texts) == len(templates) and all(texts):
                found.append(texts[0] if len(texts) == 1 else texts)
    tables = (*stored(), *moves(), *hazards(), *faults(), *page_words())
    return dict.fromkeys([*found, *tables, *formats()])


def titles() -> Iterator[str]:
    """Titles of what is known before anything was tried, and the cores that exemplars run on."""
    for path in sorted((ROOT / TARGETS).glob("*/knowledge/*.toml")):
        (rows,) = tomllib.loads(path.read_text("utf-8")).values()
        yield from (row["title"] for row in rows)
    yield from (cores.value for cores in Cores)


def faults() -> Iterator[str]:
    """What the process of a candidate says on its standard error stream as it ends."""
    text = (LIBRARY / "client/candidate_main.cpp").read_text("utf-8")
    choice = re.search(r"const char \*const words =(.*?);\n", text, re.DOTALL)
    for found in re.finditer(r'[?:] ((?:"(?:[^"\\]|\\.)*"\s*)+)', choice[1] if choice else ""):
        yield "".join(item[1] for item in _LITERAL.finditer(found[1])).removesuffix("\\n")


def hazards() -> Iterator[str]:
    """What each hazard's code means, and what helps."""
    for rule in hazard_rules().values():
        yield from (rule.what, rule.help)


def stored() -> Iterator[str]:
    """Words that are said as they are stored: of archive cells, strategies and titles in the memory."""
    yield from (*_axes(), *_families(), *titles())


def _families() -> Iterator[str]:
    """Names of strategies."""
    yield from sorted({name for family in (*ASCENDC, *TRITON) for name in family.strategies})


def moves() -> Iterator[str]:
    """Names of refinement steps: those that fields of schedules declare, and what the generators of kernel
    families yield first, with a schedule."""
    for schedule in sorted(_schedules(Schedule), key=lambda kind: (kind.__module__, kind.__qualname__)):
        for name in (name for field in schedule.declared() for name in field.names):
            yield name.template if isinstance(name, Sentence) else name
    for path in sorted((ROOT / TARGETS).rglob("*.py")):
        steps = () if path.relative_to(ROOT).as_posix().startswith(ENGLISH) else parsed(path).steps
        for node in steps:
            yield from (name for step in ast.walk(node) for name in _names(step))


def _schedules(kind: type[Schedule]) -> Iterator[type[Schedule]]:
    """All classes of schedules that the families have."""
    for schedule in kind.__subclasses__():
        if schedule.__module__.startswith("evokernel_core."):
            yield schedule
            yield from _schedules(schedule)


def is_of_steps(node: ast.FunctionDef) -> bool:
    """Whether a function of the author yields steps of refinement, by name."""
    return node.returns is not None and ast.unparse(node.returns).startswith("Iterator[tuple[str, ")


def _names(step: ast.AST) -> Iterator[str]:
    if isinstance(step, ast.Yield) and isinstance(step.value, ast.Tuple):
        first = step.value.elts[0]
        for item in (first.body, first.orelse) if isinstance(first, ast.IfExp) else (first,):
            if isinstance(item, ast.Constant):
                yield str(item.value)


def formats() -> Iterator[str]:
    """The templates of what the twin's library says, but those of values alone."""
    for path in sorted(LIBRARY.rglob("*.cpp")):
        if not path.relative_to(LIBRARY).as_posix().startswith(_UNSAID):
            written = (template_of(item) for item in formats_of(path.read_text("utf-8")))
            yield from (item for item in written if re.search(r"[A-Za-z]", re.sub(r"\{\w+\}", "", item)))


def formats_of(text: str) -> Iterator[str]:
    """The formats in a C++ file."""
    for call in _REPORT.finditer(text):
        given = list(_arguments(text, call.end()))
        place = _FORMATS[call[1]]
        if len(given) > place and given[place].lstrip().startswith('"'):
            yield "".join(re.sub(r"\\(.)", r"\1", item) for item in _LITERAL.findall(given[place]))


def _arguments(text: str, at: int) -> Iterator[str]:
    """The arguments of a call whose bracket opens before ``at``."""
    depth, start = 0, at
    while depth >= 0:
        if text[at] in "\"'" and (literal := _LITERAL.match(text, at)):
            at = literal.end()
            continue
        depth += (text[at] in "([{") - (text[at] in ")]}")
        if depth < 0 or (text[at] == "," and depth == 0):
            yield text[start:at]
            start = at + 1
        at += 1


def _axes() -> Iterator[str]:
    """Words of an archive cell, which are said as they are kept."""
    for kind in vars(descriptor).values():
        if isinstance(kind, type) and issubclass(kind, StrEnum) and kind is not StrEnum:
            yield from (word.value for word in kind)


def catalogue() -> Catalog:
    with CATALOGUE.open("rb") as file:
        return read_po(file, "zh_CN")


def compiled(words: Catalog) -> bytes:
    made = io.BytesIO()
    write_mo(made, words)
    return made.getvalue()


def _texts(item: Entry) -> tuple[str, ...]:
    return (item.string,) if isinstance(item.string, str) else tuple(item.string or ())


def main() -> None:
    """Adds what is new without a translation, drops what is not said any more, and compiles."""
    words, template = catalogue(), Catalog()
    for message in said():
        template.add(message)
    words.update(template, no_fuzzy_matching=True)
    with CATALOGUE.open("wb") as file:
        write_po(file, words, ignore_obsolete=True)
    CATALOGUE.with_suffix(".mo").write_bytes(compiled(words))
    left = [item for item in words if item.id and not any(map(bool, _texts(item)))]
    print(f"{len(words)} messages, {len(left)} of them not translated yet.")


if __name__ == "__main__":
    main()
