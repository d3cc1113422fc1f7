"""What the server says is translated: all of it, with the same to fill in, and by what is committed."""

from __future__ import annotations

import ast
import pickle
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from babel.messages.catalog import Message
from evokernel_server.features import diagnostic
from evokernel_server.features.diagnostic import page_of
from evokernel_server.texts import translations
from evokernel_server.texts.translations import _, catalogue_of, many, speak, spoken, told
from hypothesis import given
from hypothesis import strategies as st

from evokernel_core.capture.agent import sentence as agents
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.sentence import Sentence, joined, read, sentence_of
from evokernel_core.domain.serial import from_data, to_data
from evokernel_core.domain.verdict import GateName, GateResult, GateStatus
from evokernel_core.twin.run import Finished, _crash_words
from release.dialect import dialect, prose, texts
from release.words import (
    CATALOGUE,
    LIBRARY,
    ROOT,
    TARGETS,
    callee,
    catalogue,
    compiled,
    faults,
    formats_of,
    keywords,
    may_say,
    parsed,
    said,
    sources,
)
from tests.chinese import left_in_english

SERVER = Path(translations.__file__).parents[1]
HOLES = re.compile(r"\{\w*\}")
CHINESE = re.compile("[\u4e00-\u9fff]")


@pytest.fixture(autouse=True)
def english() -> Iterator[None]:
    yield
    speak("")


def test_all_that_is_said_is_in_the_catalogue_and_nothing_else() -> None:
    known, now = {message.id for message in catalogue() if message.id}, said().keys()
    assert now - known == set(), "run `make words` and translate what is new"
    assert known - now == set(), "run `make words`"


def test_a_translation_is_chinese_and_fills_in_the_same() -> None:
    messages = [message for message in catalogue() if message.id]
    assert [message.id for message in messages if message.fuzzy] == []
    faults = [(message.id, text) for message in messages for text in _untranslated(message)]
    assert faults == []


def _untranslated(message: Message) -> Iterator[str]:
    """The translations of a message that have no Chinese in them or other values to fill in."""
    english = message.id if isinstance(message.id, str) else message.id[-1]
    figures_alone = not re.search("[A-Za-z]", HOLES.sub("", english))
    for text in (message.string,) if isinstance(message.string, str) else message.string:
        same = sorted(HOLES.findall(text)) == sorted(HOLES.findall(english))
        if not same or not (figures_alone or CHINESE.search(text)):
            yield text


def test_no_sentence_has_more_than_25_words() -> None:
    forms = [text for item in said() for text in ((item,) if isinstance(item, str) else item)]
    sentences = [part for text in forms for part in re.split(r"(?<=[.!?])\s", text)]
    assert [text for text in sentences if len(text.split()) > 25] == []


def test_no_sentence_or_page_has_words_of_our_own() -> None:
    assert [(text.where, *found) for text in texts() for found in dialect(text.text)] == []


HALF_WIDTH = re.compile("[\u4e00-\u9fff][,;!?]|[,;!?][\u4e00-\u9fff]|[\u4e00-\u9fff]\\(|\\)[\u4e00-\u9fff]")
FORMER = re.compile("建模|判定|你|下限")
"""Words that Chinese sentences had beside 估算, 校验, 您 and Roofline 极限."""


def test_chinese_has_one_word_for_one_thing_and_its_own_punctuation() -> None:
    forms = [item.string for item in catalogue() if item.id]
    chinese = [text for item in forms for text in ((item,) if isinstance(item, str) else item)]
    assert [text for text in chinese if HALF_WIDTH.search(text) or FORMER.search(text)] == []


@pytest.mark.parametrize(
    ("text", "say"),
    [("35.0 us modelled on {chip}", "estimated"), ("Cancelled by a person.", "user, or you"),
     ("What binds it ({source}): {what}.", "bottleneck"), ("Kernels are judged here.", "verify, verifier"),
     ("{count} kernel waits for you.", "pending")],
)  # fmt: skip
def test_words_of_our_own_are_found(text: str, say: str) -> None:
    assert [found[1] for found in dialect(text)] == [say]


def test_code_is_no_language_of_readers() -> None:
    page = "The key `modelled`.\n```\nmodelled\n```\n"
    assert not list(dialect(prose(page))) and list(dialect(page))


def test_what_is_installed_is_what_was_translated() -> None:
    assert CATALOGUE.with_suffix(".mo").read_bytes() == compiled(catalogue()), "run `make words`"


def test_what_takes_a_template_is_named_like_a_function_of_words_or_a_class() -> None:
    assert [name for name in keywords() if not may_say(name)] == []


def test_a_template_is_written_out_and_filled_in_by_name() -> None:
    """What an f-string has made cannot be translated any more; a name without its value is an error only when
    the sentence is said."""
    wanted = keywords()
    faults = []
    for path in sources():
        for call in parsed(path).calls:
            places = wanted.get(callee(call), ())
            if places and len(call.args) >= max(places) and _is_wrong(call, call.args[places[-1] - 1]):
                faults.append(f"{path.relative_to(ROOT)}:{call.lineno}")
    assert faults == []


def _is_wrong(call: ast.Call, template: ast.expr) -> bool:
    if isinstance(template, ast.JoinedStr):
        names = {getattr(node, "id", "") for node in ast.walk(template)}
        return not names & {"name"} or len(template.values) > 3  # `"{part0} {part1}"` is made of names alone
    if not isinstance(template, ast.Constant) or not call.keywords:
        return False
    wanted = set(re.findall(r"\{(\w+)\}", re.sub(r"\{\{|\}\}", "", template.value))) - {"count"}
    known = {item.arg for item in call.keywords if item.arg} - {"count", "stale"}
    is_open = any(item.arg is None for item in call.keywords)
    return not known <= wanted if is_open else known != wanted


@pytest.mark.parametrize(
    ("locale", "folder"),
    [("zh-cn", "zh_CN"), ("zh", "zh_CN"), ("zh-Hans-CN", "zh_CN"), ("ZH_CN", "zh_CN"), ("zh-tw", ""),
     ("zh-Hant", ""), ("en-GB", ""), ("de", ""), ("", ""), ("../../zh_CN", "")],
)  # fmt: skip
def test_the_language_of_a_locale(locale: str, folder: str) -> None:
    assert catalogue_of(locale) == folder
    speak(locale)
    assert (_("estimated") == "estimated") is not bool(folder)


def test_braces_of_what_is_filled_in_stay() -> None:
    assert _("{name} is unchanged.", name="{x}") == "{x} is unchanged."
    assert many("{count} file", "{count} files", 1) == "1 file"
    assert many("{count} file", "{count} files", 2) == "2 files"


@pytest.mark.usefixtures("scripted")
async def test_a_chinese_editor_is_spoken_to_in_chinese(
    sessions: Any, workspace: Path, eventually: Any
) -> None:
    editor = await sessions.start(locale="zh-cn", settings={"refineInBackground": False})
    uri = editor.open(workspace / "model.py")
    (hint,) = await eventually(lambda: editor.hints(uri))
    assert hint.label == "⚡ 12x  35 µs（估算）"
    action = await editor.action(uri, editor.line_of(uri, "torch.softmax"), "生成 NPU 算子")
    await editor.run(action)
    assert "可在 model.py 中生成 1 个算子；最大收益为 92%。" in [item.text for item in editor.statuses]
    refused = await editor.command("evokernel.forget", {"what": "?"})
    assert refused["message"] == "请说明要删除什么：您的决定，还是整个记忆库。"


REPORTS = re.compile(r"(?<!void )\b(?:ReportError|ReportWarning)\b\)?\(")


def test_what_the_twin_reports_is_written_out() -> None:
    """A format that is no literal is in no catalogue; a width that is an argument would shift the values."""
    texts = {path.name: path.read_text("utf-8") for path in LIBRARY.rglob("*.cpp")}
    found = {name: list(formats_of(text)) for name, text in texts.items()}
    assert [name for name, text in texts.items() if len(found[name]) < len(REPORTS.findall(text))] == []
    assert [(name, item) for name, items in found.items() for item in items if "%*" in item] == []


def test_what_a_process_says_as_it_ends_is_said_in_chinese() -> None:
    assert len(list(faults())) == 2
    for line in faults():
        ended = Finished(-signal.SIGSEGV, "", f"noise\n{line}\n", 0.1, timed_out=False)
        said = _crash_words(ended)
        assert left_in_english(said) == "" and f"({line})" in said


def test_a_step_of_refinement_is_named_where_it_is_found() -> None:
    """As a literal that is yielded, or as a Sentence: what a variable holds is found in no other way."""
    steps = {
        f"{path.relative_to(ROOT / TARGETS)}:{node.name}": node
        for path in sorted((ROOT / TARGETS).rglob("*.py"))
        for node in parsed(path).steps
    }
    assert steps
    assert [(name, text) for name, node in steps.items() for text in _unnamed(node)] == []


def _unnamed(steps: ast.FunctionDef) -> Iterator[str]:
    """What a function yields as a step's name or gives its variable, where the name is not found."""
    yielded = [
        node.value.elts[0]
        for node in ast.walk(steps)
        if isinstance(node, ast.Yield) and isinstance(node.value, ast.Tuple)
    ]
    made = (ast.Constant, ast.IfExp, ast.Call, ast.Name)
    yield from (ast.unparse(item) for item in yielded if not isinstance(item, made))
    if any(isinstance(item, ast.Name) for item in yielded):
        yield from (ast.unparse(node) for node in ast.walk(steps) if _holds_words(node))


def _holds_words(node: ast.AST) -> bool:
    """Whether it gives a text of several words a name: by assignment, or in a table that is walked."""
    given = node.value if isinstance(node, ast.Assign) else node.iter if isinstance(node, ast.For) else None
    while isinstance(given, ast.Call) and getattr(given.func, "id", "") != "Sentence":
        given = given.func
    parts = [given, *(getattr(given, "elts", None) or ()), *(getattr(given, "keys", None) or ())]
    parts += [item for part in parts if isinstance(part, ast.Tuple) for item in part.elts]
    parts += [side for part in parts if isinstance(part, ast.IfExp) for side in (part.body, part.orelse)]
    return any(isinstance(part, ast.Constant) and " " in str(part.value) for part in parts)


ANY = st.one_of(st.text(max_size=8), st.integers(), st.floats(allow_nan=False))
INNER = st.builds(lambda value: Sentence("Line {line} recurses without end.", line=value), ANY)


@given(st.dictionaries(st.sampled_from(["op", "dtype", "line"]), st.one_of(ANY, INNER), max_size=3))
def test_a_sentence_is_the_same_wherever_it_was_carried(values: dict[str, Any]) -> None:
    template = " of ".join(["What", *(f"{{{name}}}" for name in values)])
    first = Sentence(template, **values)
    assert first == template.format(**first.values)
    for other in (sentence_of(first.data()), read(first.written()), pickle.loads(pickle.dumps(first))):
        assert (other, other.data()) == (first, first.data())
    chineseby_agent = agents.Sentence(template, **{name: _as_the_agent_has(v) for name, v in values.items()})
    assert (chineseby_agent, chineseby_agent.data()) == (first, first.data())
    passed = GateResult(GateName.AUDIT, GateStatus.FAILED, feedback=joined([first, "", Sentence("Again.")]))
    again = from_data(to_data(passed), GateResult).feedback
    assert (again, again.data()) == (f"{first} Again.", passed.feedback.data())


def _as_the_agent_has(value: Any) -> Any:
    return agents.Sentence(value.template, **value.values) if isinstance(value, Sentence) else value


@pytest.mark.parametrize("data", [None, 3, [], {}, {"say": "x"}, {"say": "{a}", "with": {"b": 1}},
                                  {"say": "{a.b}", "with": {"a": 1}}, {"say": 1, "with": {}}])  # fmt: skip
def test_what_is_no_sentence_is_refused(data: object) -> None:
    with pytest.raises(ValueError, match="sentence"):
        sentence_of(data)


def test_what_the_core_says_is_said_in_the_language_of_the_editor() -> None:
    inner = PlanError("{op} of {dtype} is not covered.", op="aten.frac.default", dtype="int8")
    error = PlanError("Programs of several kernels are left out: {error}", error=inner)
    english = "Programs of several kernels are left out: aten.frac.default of int8 is not covered."
    assert (str(error), told(error)) == (english, english)
    speak("zh-cn")
    assert told(error) == "省略了由多个算子组成的程序：不支持 int8 的 aten.frac.default。"
    assert _("No kernel: {reason}", reason=inner.sentence) == "没有算子：不支持 int8 的 aten.frac.default。"
    assert str(error) == english
    assert told("error: expected ';' {") == "error: expected ';' {"
    assert told(Sentence("error: expected ';' {")) == "error: expected ';' {"


PAGES = sorted(diagnostic.FOLDER.glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_help_page_is_there_in_chinese(page: Path) -> None:
    speak("zh-cn")
    link = page_of(page.stem)
    other = diagnostic.FOLDER / spoken() / page.name
    assert link is not None and link.href == other.as_uri()
    english, chinese = page.read_text("utf-8"), other.read_text("utf-8")
    assert len(english.splitlines()) == len(chinese.splitlines())
    for line, said_there in zip(english.splitlines(), chinese.splitlines(), strict=True):
        assert re.findall(r"`[^`]+`", line) == re.findall(r"`[^`]+`", said_there)
        assert bool(re.search(r"[A-Za-z]{3}", line)) == bool(CHINESE.search(said_there))
    speak("")
    assert page_of(page.stem).href == page.as_uri()  # type: ignore[union-attr]


def test_there_is_no_other_page_in_chinese() -> None:
    assert {item.name for item in (diagnostic.FOLDER / "zh_CN").iterdir()} == {page.name for page in PAGES}


SHOWS = {"Refused", "Refusal", "CodeActionDisabled"}
"""What is made with a sentence for a person as its first argument."""
TITLES = {"message", "title"}
"""Keys and arguments that are shown."""


@pytest.fixture(scope="module")
def trees() -> dict[str, ast.Module]:
    """The server's modules by their paths."""
    paths = sorted(SERVER.rglob("*.py"))
    return {str(path.relative_to(SERVER)): ast.parse(path.read_text("utf-8")) for path in paths}


def test_no_sentence_is_said_in_english_alone(trees: dict[str, ast.Module]) -> None:
    shown = [(name, node) for name, tree in trees.items() for node in _shown(tree)]
    assert shown
    assert [f"{name}:{node.lineno}" for name, node in shown if _is_words(node)] == []


def test_every_sentence_stands_where_it_is_found(trees: dict[str, ast.Module]) -> None:
    """Within an f-string no message is found for translation before Python 3.12."""
    wanted = keywords()
    strings = [
        (name, node)
        for name, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
    ]
    calls = [
        (name, node) for name, string in strings for node in ast.walk(string) if isinstance(node, ast.Call)
    ]
    assert calls
    assert [f"{name}:{call.lineno}" for name, call in calls if callee(call) in wanted and _says(call)] == []


def _says(call: ast.Call) -> bool:
    return any(isinstance(item, ast.Constant) for item in call.args)


def _shown(tree: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = callee(node)
            yield from node.args[:1] if name in SHOWS else ()
            yield from (item.value for item in node.keywords if item.arg in TITLES)
            yield from node.args[1:2] if name.startswith("ShowMessage") else ()
        elif isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            yield from (value for key, value in pairs if getattr(key, "value", None) in TITLES)


def _is_words(node: ast.expr) -> bool:
    """A literal with words in it; names and figures alone, and the product's own name, are none."""
    if isinstance(node, ast.BoolOp):
        return any(map(_is_words, node.values))
    texts = (
        [node] if isinstance(node, ast.Constant) else node.values if isinstance(node, ast.JoinedStr) else []
    )
    written = " ".join(str(item.value) for item in texts if isinstance(item, ast.Constant))
    return bool(re.search(r"[A-Za-z]{2,}", written.replace("EvoKernel", "")))
