"""The light install serves the editor, and says in one sentence what each thing that it lacks needs."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import pytest_lsp
from packaging.requirements import Requirement
from pytest_lsp import LanguageClient

from evokernel_core import extras
from evokernel_core.memory.store import Memory
from tests import warm
from tests.light import PROJECT, Light, bare_environment, make_light
from tests.server.conftest import Editor, capabilities, eventually
from tests.synthesis.conftest import make_task
from tests.synthesis.test_rules import record_kernel

ORDERED = {"pygls", "lsprotocol", "torch", "torch-npu", "openai", "sqlite-utils", "watchdog"}
"""Packages that the project is to be built on, in the light install or in an extra."""
ON_PURPOSE = {
    "evokernel_core.synthesis.proposers": "model",
    "evokernel_core.bounded": "remote",
    "evokernel_core.verifier.client": "remote",
    "evokernel_core.verifier.schema": "remote",
    "evokernel_core.verifier.serv": "service",
}
"""Modules, by the beginnings of their names, that an extra's packages are for."""
WALK = """
import importlib, json, pkgutil, sys
import evokernel_core, evokernel_server
lacking = {}
backends = "evokernel_core.targets.triton.backends"
# run by the person's interpreter, which has torch and triton
elsewhere = ("evokernel_core.capture.agent", f"{backends}.child.", f"{backends}.interpreted.")
for package in (evokernel_core, evokernel_server):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if module.name.startswith(elsewhere) or module.name.endswith("__main__"):
            continue
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            lacking[module.name] = error.name
print(json.dumps(lacking))
"""
ENTRY = "from evokernel_core.cli.main import main; main()"
LEARN = """
from evokernel_core.domain.tuning_record import TuningRecord
from evokernel_core.synthesis.residual import learned
records = [TuningRecord("t", str(n), "chip", "v", "f", 1.0, 2.0, (("x", float(n)),), seq=n) for n in range(9)]
learned(records)
"""


@pytest.fixture(scope="module")
def light(tmp_path_factory: pytest.TempPathFactory) -> Light:
    return make_light(tmp_path_factory.mktemp("light") / "venv")


distributions = cache(metadata.packages_distributions)


def requirements(extra: str) -> set[str]:
    return {Requirement(item).name for item in PROJECT["optional-dependencies"][extra]}


def test_the_ordered_packages_are_named() -> None:
    lists = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    named = {Requirement(item).name.replace("_", "-") for items in lists for item in items}
    assert named >= ORDERED


@pytest.mark.parametrize("extra", [*extras.ALL, extras.FLEET], ids=lambda extra: extra.name)
def test_an_extra_is_the_modules_that_are_missed(extra: extras.Extra) -> None:
    named = {distributions()[module][0] for module in extra.modules}
    assert named == requirements(extra.name) - {"evokernel-lsp"}


def test_all_is_every_extra_of_our_own() -> None:
    (everything,) = PROJECT["optional-dependencies"]["all"]
    assert Requirement(everything).extras == {extra.name for extra in extras.ALL}
    assert "evokernel-lsp[all]" in PROJECT["optional-dependencies"]["dev"], "make demo and make test have all"


def test_only_what_an_extra_is_for_needs_it(light: Light) -> None:
    done = light.run("-c", WALK)
    assert done.returncode == 0, done.stderr
    modules = {name for extra in (*extras.ALL, extras.FLEET) for name in extra.modules} | {"starlette"}
    for module, lacks in json.loads(done.stdout).items():
        assert any(module.startswith(name) for name in ON_PURPOSE), f"{module} needs {lacks}"
        assert lacks.partition(".")[0] in modules


@pytest.mark.parametrize(
    ("extra", "arguments"),
    [
        ("service", "verifier serve --port 1"),
        ("remote", "verifier status"),
        ("keyring", "key unset model"),
        ("model", "synth model.py --proposer llm --model-url http://127.0.0.1:9 --model none"),
        ("remote", "synth model.py --verifier http://127.0.0.1:9"),
    ],
)
def test_a_command_names_the_extra_that_it_lacks(
    light: Light, tmp_path: Path, extra: str, arguments: str
) -> None:
    (light.folder / "model.py").write_text("import torch\n\n\n# evokernel: x=f32[64,64]\ndef f(x):\n"
                                           "    return torch.softmax(x * 2, dim=-1)\n", "utf-8")  # fmt: skip
    environment = {"EVOKERNEL_HOME": str(tmp_path), "EVOKERNEL_INTERPRETER": warm.interpreter()}
    done = light.run("-c", ENTRY, *arguments.split(), environment=environment)
    assert done.returncode != 0
    said = [line for line in (done.stdout + done.stderr).splitlines() if f"evokernel-lsp[{extra}]" in line]
    assert said, done.stderr
    assert "Traceback" not in done.stderr


def test_learning_from_verdicts_names_the_extra(light: Light) -> None:
    done = light.run("-c", LEARN)
    assert "ExtraMissing: Estimate calibration" in done.stderr
    assert "install evokernel-lsp[statistics]: pip install '" in done.stderr


@pytest.mark.parametrize("command", ["stats", "top", "rules", "rules --json", "why {kernel}", "rebuild"])
def test_a_memory_of_failures_is_looked_into(light: Light, failures: Path, command: str) -> None:
    """`memory rules` ended with the name of an extra, though rules of the hardware take no statistics."""
    with Memory(failures / "memory.db") as memory:
        kernel = memory.attempts()[0].source_id
    arguments = command.format(kernel=kernel[:12]).split()
    done = light.run("-c", ENTRY, "memory", *arguments, environment={"EVOKERNEL_HOME": str(failures)})
    assert done.returncode == 0, done.stderr
    assert done.stdout
    if "rules" in command:
        assert "You cannot" in done.stdout
        assert done.stderr.startswith("Rules about schedules are left out: ")
        assert "evokernel-lsp[statistics]" in done.stderr


def test_what_takes_statistics_alone_names_them(light: Light, failures: Path) -> None:
    environment = {"EVOKERNEL_HOME": str(failures)}
    done = light.run("-c", ENTRY, "memory", "estimates", "--chip", "chip", environment=environment)
    assert done.returncode != 0
    assert "evokernel-lsp[statistics]" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.fixture(scope="module")
def failures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of a memory in which kernels of several schedules failed, often enough to learn from."""
    home = tmp_path_factory.mktemp("failures")
    with Memory(home / "memory.db") as memory:
        for n in range(1, 9):
            record_kernel(memory, make_task(n % 3), n, fails=n > 4)
    return home


def test_where_it_came_from_is_where_an_extra_comes_from(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    wheel = tmp_path / "evokernel lsp-1-py3-none-any.whl"
    wheel.touch()

    class Installed:
        def read_text(self, _: str) -> str:
            return json.dumps({"url": wheel.as_uri()})

    monkeypatch.setattr(extras.metadata, "distribution", lambda _: Installed())
    assert extras.install_command("model") == f"pip install '{wheel}[model]'"
    wheel.unlink()
    assert extras.install_command("model") == "pip install '/path/to/evokernel[model]'"


def test_a_package_of_somebody_else_is_not_blamed_on_an_extra() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_package"), extras.needed(extras.MODEL):
        import no_such_package  # noqa: F401


async def test_the_light_install_serves_the_editor(light: Light, tmp_path: Path) -> None:
    model = tmp_path / "model.py"
    model.write_text("import torch\n\n\n# evokernel: x=f32[1024,1000]\ndef f(x):\n"
                     "    return torch.softmax(x * 0.125, dim=-1)\n", "utf-8")  # fmt: skip
    config = pytest_lsp.ClientServerConfig(
        server_command=[str(light.python), "-c", ENTRY, "lsp"],
        server_env={**bare_environment(), "EVOKERNEL_HOME": str(tmp_path / "home")},
    )
    client = await config.start()
    assert isinstance(client, LanguageClient)
    editor = Editor(client, "utf-16")
    options = {"settings": {"interpreter": warm.interpreter(), "pauseS": 0.1}, "trusted": True}
    asked: Any = pytest_lsp.client.types.InitializeParams(capabilities(), initialization_options=options)
    await client.initialize_session(asked)
    uri = editor.open(model)
    (hint,) = await eventually(lambda: editor.hints(uri))
    assert re.search(r"µs est\.", str(hint.label))
    assert [item.title for item in await editor.actions(uri, 5) if item.title.startswith("Generate")]
    await client.shutdown_session()
