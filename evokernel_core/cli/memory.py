"""``evokernel memory``: look into, export, import or forget what was learned."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from rich.table import Table

from evokernel_core.cli.options import OutputFile, chip_option, target_option
from evokernel_core.cli.tables import add_row, column, print_table
from evokernel_core.cli.terminal import say
from evokernel_core.domain.errors import UsageError
from evokernel_core.domain.experience import Experience, ExperienceKind, Stage
from evokernel_core.domain.serial import dumps, to_data
from evokernel_core.domain.settings import Settings
from evokernel_core.domain.step import Purpose
from evokernel_core.extras import STATISTICS
from evokernel_core.memory.ledger import ALPHA
from evokernel_core.memory.packs import LONGEST_LINE, export_pack, import_pack
from evokernel_core.memory.store import Memory
from evokernel_core.memory.values import Value
from evokernel_core.paths import memory_path, step_model_path
from evokernel_core.synthesis.data_card import as_markdown, data_card
from evokernel_core.synthesis.residual import MOST, trust
from evokernel_core.synthesis.rules import in_words, learned_rules
from evokernel_core.synthesis.step_model import StepModel, keep_model
from evokernel_core.synthesis.steps import PER_TASK, SampleChoice, Tally, steps
from evokernel_core.synthesis.training import FEWEST, lessons, trained
from evokernel_core.synthesis.why import kernel_named, why
from evokernel_core.targets import author_for, with_device


@click.group("memory", context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Look into, export, import or forget what was learned."""


@contextmanager
def _memory() -> Iterator[Memory]:
    with Memory(memory_path()) as memory:
        yield memory


_json = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")


@command.command()
@_json
def stats(as_json: bool) -> None:
    """Count what the memory holds."""
    with _memory() as memory:
        counts = dict(memory.counts())
    if as_json:
        say(json.dumps({"path": str(memory_path()), "counts": counts}))
        return
    say(str(memory_path()))
    for name, count in counts.items():
        say(f"{count:8d}  {name}")


@command.command()
@click.option("--stage", type=click.Choice([stage.value for stage in Stage]), help="Only one stage.")
@click.option("-n", "number", default=20, show_default=True, type=click.IntRange(1), help="How many.")
@_json
def top(stage: str | None, number: int, as_json: bool) -> None:
    """The items that were worth most, over all op categories and in each."""
    with _memory() as memory:
        values = memory.values(Stage(stage) if stage else None, number)
        rows = [(value, _title(memory, value)) for value in values]
    if as_json:
        say(json.dumps([to_data(value) | {"title": title} for value, title in rows]))
        return
    table = Table(*map(column, ("Q", "updates", "stage", "op")), "item")
    for value, title in rows:
        add_row(table, f"{value.q:+.3f}", str(value.n), value.stage, value.op_category or "(all)", title)
    print_table(table)


def _title(memory: Memory, value: Value) -> str:
    item = memory.experience(value.item)
    return f"{item.title} [{item.id[:12]}]" if item else value.item


@command.command()
@target_option
@chip_option
@_json
def estimates(target: str, chip: str, as_json: bool) -> None:
    """How far estimates are from verdicts on a device, by family, as far as that is known."""
    chip = (
        chip or with_device(Settings(target=target)).chip
    )  # a memory may know devices that have no file here
    with _memory() as memory:
        result = {name: memory.tuning_records(chip, name, MOST) for name in memory.judges(chip)}
    trusted = {name: trust(records) for name, records in result.items()}
    if as_json:
        say(json.dumps({name: [to_data(item) for item in items] for name, items in trusted.items()}))
        return
    if not any(trusted.values()):
        say(f"No verdict on {chip} stands beside an estimate yet.")
    for name, items in trusted.items():
        word = next((record.source.word for record in result[name] if record.source), "")
        for item in items:
            said = f"{item.family}: {item.verdicts} {word} verdict(s) of {name}; the next one is expected"
            say(f"{said} at {item.mean:.2f} times its estimate ({item.low:.2f} to {item.high:.2f}).")


@command.command()
@click.argument("item")
@_json
def show(item: str, as_json: bool) -> None:
    """Show the experience with this id (or the beginning of one)."""
    with _memory() as memory:
        result = _find(memory, item)
        values = [value for value in memory.values() if value.item == result.id]
    if as_json:
        say(json.dumps({"experience": to_data(result), "values": to_data(values)}))
        return
    say(f"{result.kind.value} {result.id}\n{result.title}\n\n{result.body}")
    for value in values:
        where = value.op_category or "all ops"
        say(f"Q {value.q:+.3f} after {value.n} update(s) ({value.stage}, {where})")


def _find(memory: Memory, beginning: str) -> Experience:
    experiences = [experience for experience in memory.experiences() if experience.id.startswith(beginning)]
    if len(experiences) != 1:
        what = "no item" if not experiences else f"{len(experiences)} items"
        raise UsageError(f"The memory has {what} whose id begins with {beginning!r}; see `memory top`.")
    return experiences[0]


@command.command("export")
@click.argument("file", type=OutputFile())
@click.option(
    "--format",
    "form",
    type=click.Choice(["pack", "steps"]),
    default="pack",
    show_default=True,
    help="Experiences for another memory, or steps of searches to train a model on.",
)
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    type=click.Choice([kind.value for kind in ExperienceKind]),
    help="In a pack, only items of this kind; may be given again.",
)
@click.option(
    "--for",
    "purpose",
    type=click.Choice([item.value for item in Purpose]),
    default=Purpose.SUPERVISED.value,
    show_default=True,
    help="What steps are for.",
)
@click.option(
    "--per-task",
    default=PER_TASK,
    show_default=True,
    type=click.IntRange(0),
    metavar="N",
    help="At most N steps of a task, the best ones; 0: all.",
)
@click.option("--without-models", is_flag=True, help="No steps that a language model took.")  # fmt: skip
def export(
    file: Path, form: str, kinds: tuple[str, ...], purpose: str, per_task: int, without_models: bool
) -> None:
    """Write experiences and their values, or training steps, to FILE as JSON lines.

    Beside a FILE of steps two data cards say what it holds: one to read (.card.md) and one as JSON.
    """
    if form == "steps":
        if kinds:
            raise UsageError("--kind chooses items of a pack; leave it out for steps.")
        _export_steps(file, SampleChoice(Purpose(purpose), per_task, not without_models))
        return
    chosen = [ExperienceKind(kind) for kind in kinds] or list(ExperienceKind)
    with _memory() as memory:
        lines = list(export_pack(memory, chosen))
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    say(f"{len(lines) - 1} experiences written to {file}.")


def _export_steps(file: Path, choice: SampleChoice) -> None:
    tally = Tally()
    with _memory() as memory, file.open("w", encoding="utf-8") as out:
        for step in steps(memory, choice, tally):
            out.write(f"{dumps(step)}\n")
    card = data_card(choice, tally)
    for ending, text in ((".card.md", as_markdown(card)), (".card.json", f"{dumps(card)}\n")):
        file.with_suffix(ending).write_text(text, encoding="utf-8")
    say(f"{card.samples} steps of {card.tasks} tasks written to {file}, of {card.attempts} attempts.")
    say(f"{file.with_suffix('.card.md')} says what they are, and what to ask before they are passed on.")


@command.command()
@target_option
@chip_option
@click.option(
    "--min-rows",
    default=FEWEST,
    show_default=True,
    type=click.IntRange(1),
    metavar="N",
    help="Steps that there must be to learn from.",
)
@_json
def train(target: str, chip: str, min_rows: int, as_json: bool) -> None:
    """Fit a step model to the searches on a device; `--policy model` orders moves by it."""
    device = with_device(Settings(target=target, chip=chip))
    with _memory() as memory:
        known = lessons(memory, author_for(device.chip, device.target))
    model, path = trained(known, min_rows), step_model_path(device.chip)
    keep_model(model, path)
    if as_json:
        held_out = to_data(model.held_out)
        told = {"chip": model.chip, "verifier": model.verifier, "rows": model.rows, "tasks": model.tasks}
        say(json.dumps({**told, "held_out": held_out, "left_out": known.left_out, "path": str(path)}))
        return
    say(
        f"{path} learned from {model.rows} steps of {model.tasks} tasks on {model.chip}, by {model.verifier}."
    )
    say(_held_out(model))
    for reason, count in known.left_out.most_common():
        say(f"{count:8d}  left out: {reason}")


def _held_out(model: StepModel) -> str:
    """How it orders steps of operations that it never saw, in words."""
    held = model.held_out
    low, high = held.interval
    told = f"Of {held.pairs} pairs of steps on {held.operations} operations that it never saw, it orders"
    return (
        f"{told} {held.concordance:.0%} as they came ({low:.0%} to {high:.0%}); "
        f"estimates order {held.by_estimate:.0%}."
    )


@command.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def import_(file: Path) -> None:
    """Add the experiences of a pack; values are taken where this memory has none."""
    with _memory() as memory, file.open(encoding="utf-8", errors="replace") as lines:
        result = import_pack(memory, iter(lambda: lines.readline(LONGEST_LINE + 1), ""))
    say(f"{result.new} of {result.read} experiences were new.")


@command.command("why")
@click.argument("kernel")
def why_(kernel: str) -> None:
    """Say what KERNEL was made from, and what moved by it: the folder or the name of its package, or the
    beginning of its id."""
    with _memory() as memory:
        for sentence in why(memory, kernel_named(memory, kernel, Path.cwd())):
            say(sentence)


@command.command("rules")
@_json
def rules_(as_json: bool) -> None:
    """The rules learned from failures, and the evidence for each."""
    learns = STATISTICS.is_installed
    with _memory() as memory:
        result = learned_rules(memory, schedules=learns)
    if as_json:
        say(json.dumps(to_data(result)))
    for rule in () if as_json else result:
        say("\n  ".join(in_words(rule)))
    if not (result or as_json):
        say("The memory holds no rules: no kernel has broken a rule of the hardware yet.")
    if not learns:
        say(f"Rules about schedules are left out: {STATISTICS.missing()}", err=True)


@command.command()
@click.option("--alpha", type=click.FloatRange(0, 1, min_open=True),
              help=f"Step size from now on, {ALPHA} where it was never set.")  # fmt: skip
def rebuild(alpha: float | None) -> None:
    """Make all values and statistics again from the log of rewards."""
    with _memory() as memory:
        result = memory.rebuild(alpha)
    say(f"{result.events} rewards gave {result.values} values; none moved by more than {result.moved:.3f}.")


@command.command()
@click.option("--item", help="The experience with this id (or the beginning of one).")
@click.option("--task", help="Everything about the task with this id.")
@click.option("--all", "everything", is_flag=True, help="Everything.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def forget(item: str | None, task: str | None, everything: bool, yes: bool) -> None:
    """Remove an experience, a task, or everything."""
    if (item is not None) + (task is not None) + everything != 1:
        raise UsageError("Say what to forget: one of --item ID, --task ID or --all.")
    with _memory() as memory:
        if everything:
            if not yes:
                click.confirm(f"Forget everything in {memory.path}?", abort=True)
            memory.forget_everything()
            for model in step_model_path("").parent.glob(step_model_path("*").name):
                model.unlink()
        elif task is not None and not memory.forget_task(task):
            raise UsageError(f"The memory has no task {task!r}; see `memory show` of an item for its task.")
        elif item is not None:
            memory.forget_experience(_find(memory, item).id)
    say("Forgotten.")
