"""Compares the table of the interface with asc-devkit's documentation, and kernels with the table.

    python benchmarks/api_table.py --asc-devkit DIR [--kernels DIR ...] [--json OUT]

For each row: its page exists and says that Atlas A2 has the function; each published signature stands on the
page; each type of an element that the row names is named there. What a page says of other chips is left out.
With ``--kernels``: each function of the interface that ``op_kernel.cpp`` files below the folders call has
a row. Rows with former names are compared under today's.

Exit status 1 where something differs, 2 where the checkout has no documentation.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from evokernel_core.hardware.ascend.api import ApiRow, api_rows, named

HERE = Path(__file__).parent
INTERFACE = HERE.parent / "evokernel_core" / "twin" / "include" / "evokernel" / "twin"
_ONLY_FOR = re.compile(r'\s*<!--\s*npu="([^"]*)"\s*\w+\s*-->')
_IN_LINE = re.compile(r'<!--\s*npu="([^"]*)"\s*\w+\s*-->(.*?)<!--\s*end\s[^>]*-->')
_END = re.compile(r"\s*<!--\s*end\s")
_SECTION = re.compile(r"^## [^\n]*{}[^\n]*\n(.*?)(?=^## |\Z)".replace("{}", "%s"), re.MULTILINE | re.DOTALL)
_CALL = re.compile(r"(?<![\w:}])(?:AscendC::)?([A-Z]\w+)\s*(?:<[^;{}()]{0,120}?>)?\s*\(")
_WIDTHS = {"b8": 1, "b16": 2, "b32": 4, "b64": 8}
_BYTES = {
    **dict.fromkeys(("int8_t", "uint8_t"), 1),
    **dict.fromkeys(("int16_t", "uint16_t", "half", "bfloat16_t"), 2),
    **dict.fromkeys(("int32_t", "uint32_t", "float"), 4),
    **dict.fromkeys(("int64_t", "uint64_t", "double"), 8),
}


def of_a2(page: str) -> str:
    """A page without the lines that are marked as of other chips."""
    kept: list[str] = []
    marks: list[bool] = []
    inline = _IN_LINE.sub(lambda found: found[2] if "910b" in found[1].split(",") else "", page)
    for line in inline.split("\n"):
        mark = _ONLY_FOR.match(line)
        if mark:
            marks.append("910b" in mark[1].split(","))
        elif _END.match(line):
            marks = marks[:-1]
        elif all(marks):
            kept.append(line)
    return "\n".join(kept)


def squeezed(text: str) -> str:
    """C++ without spaces, and without the marks that signatures of the table lack."""
    text = re.sub(r"//[^\n]*", "", text)
    return re.sub(r"__aicore__|\bstatic\b|\binline\b|\s|;", "", text)


def differences(row: ApiRow, docs: Path) -> Iterator[str]:
    """What of a row its page does not bear out, a sentence each."""
    path = docs / row.page
    if not path.is_file():
        yield f"{row.key}: there is no page {row.page}."
        return
    page = of_a2(path.read_text(encoding="utf-8"))
    support = _section(page, "产品支持情况")
    if not re.search(r"Atlas A2 训练系列产品/Atlas A2 推理系列产品：(?:支持|仅支持)", support):
        yield f"{row.key}: the page does not say that Atlas A2 has it."
    published = squeezed(_section(page, "函数原型"))
    for signature in row.signatures:
        if squeezed(signature) not in published:
            yield f"{row.key}: the page has no {signature}."
    given = set(re.findall(r"[A-Za-z0-9_]+", page))
    wide = {_WIDTHS[word] for word in given & set(_WIDTHS)}
    for dtype in sorted({name for rule in row.types for name in (rule.dst, *rule.sources)}):
        if dtype not in given and _BYTES.get(dtype) not in wide:
            yield f"{row.key}: the page does not name {dtype}."


def _section(page: str, title: str) -> str:
    found = re.search(_SECTION.pattern % title, page, _SECTION.flags)
    return found[1] if found else ""


def interface_names() -> set[str]:
    """The functions and members that the twin's headers declare."""
    found: set[str] = set()
    for path in INTERFACE.rglob("*.h"):
        text = path.read_text(encoding="utf-8")
        found |= set(
            re.findall(r"\b(?:void|auto|bool|T|U|[a-z]\w*_t|LocalTensor<\w+>)\s+([A-Z]\w+)\s*\(", text)
        )
        found |= set(re.findall(r"^EVK_\w+\(([A-Z]\w+)", text, re.MULTILINE))
    return found


def unlisted_calls(text: str) -> set[str]:
    """Functions of the interface that a kernel's text calls, does not define itself, and that have no row."""
    typed = r"\b(?:void|auto|bool|T|U|[a-z]\w*_t|float|half|LocalTensor<\w+>)\s+([A-Z]\w+)\s*\("
    own = {name for form in (typed, r"__aicore__ inline \w+ ([A-Z]\w+)\(") for name in re.findall(form, text)}
    called = set(_CALL.findall(text)) & interface_names()
    return {name for name in called - own if not named(name)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--asc-devkit", type=Path, required=True, metavar="DIR")
    parser.add_argument("--kernels", type=Path, nargs="*", default=[], metavar="DIR")
    parser.add_argument("--json", type=Path, metavar="OUT")
    options = parser.parse_args()
    docs = options.asc_devkit / "docs" / "zh" / "api"
    if not docs.is_dir():
        print(f"{options.asc_devkit} has no docs/zh/api; give a checkout of asc-devkit.", file=sys.stderr)
        return 2
    found = [text for row in api_rows() for text in differences(row, docs)]
    kernels = sorted(path for folder in options.kernels for path in folder.rglob("op_kernel.cpp"))
    calls = {str(path): sorted(unlisted_calls(path.read_text())) for path in kernels}
    found += [f"{path}: {', '.join(names)} have no row." for path, names in calls.items() if names]
    print("\n".join(found))
    rows = api_rows()
    signatures = sum(len(row.signatures) for row in rows)
    print(f"{len(rows)} rows, {signatures} signatures, {len(kernels)} kernels, {len(found)} differences")
    summary = {
        "rows": len(rows),
        "signatures": signatures,
        "kernels": len(kernels),
        "differences": len(found),
    }
    if options.json:
        options.json.write_text(
            json.dumps({"differences": found, "summary": summary}, indent=1, ensure_ascii=False)
        )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
