"""Seconds from the code action to the applied kernel: softmax over [1024, 4096] float16.

A real language server is driven over standard input and output. *Cold*: an empty memory and no compiled
kernel; only the twin's own library is built (`evokernel doctor --prepare` did that). *Warm*: the same
model in another file, with the memory of the first. The capture has run when the clock starts, since
the hint is on the screen before anyone can ask.

Usage: python benchmarks/apply.py [--json OUT]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from lsprotocol import types
from pygls.lsp.client import LanguageClient

MODEL = """\
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)


def get_inputs():
    return [torch.rand(1024, 4096, dtype=torch.float16)]


def get_init_inputs():
    return []
"""
PATIENCE_S = 120.0
EVOKERNEL = Path(sys.executable).parent / "evokernel"


async def start(workspace: Path) -> tuple[LanguageClient, asyncio.Event]:
    client = LanguageClient("apply-benchmark", "1")
    applied = asyncio.Event()

    @client.feature(types.WORKSPACE_APPLY_EDIT)
    def on_edit(params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
        applied.set()
        return types.ApplyWorkspaceEditResult(applied=True)

    @client.feature(types.WINDOW_WORK_DONE_PROGRESS_CREATE)
    def on_progress(params: types.WorkDoneProgressCreateParams) -> None:
        return None

    @client.feature(types.WORKSPACE_INLAY_HINT_REFRESH)
    def on_refresh(*_: object) -> None:
        return None

    await client.start_io(str(EVOKERNEL), "lsp")
    await client.initialize_async(
        types.InitializeParams(
            process_id=os.getpid(),
            root_uri=workspace.as_uri(),
            workspace_folders=[types.WorkspaceFolder(workspace.as_uri(), workspace.name)],
            capabilities=types.ClientCapabilities(
                workspace=types.WorkspaceClientCapabilities(
                    apply_edit=True,
                    workspace_edit=types.WorkspaceEditClientCapabilities(document_changes=True),
                ),
                text_document=types.TextDocumentClientCapabilities(
                    code_action=types.CodeActionClientCapabilities(
                        resolve_support=types.ClientCodeActionResolveOptions(["command"]), data_support=True
                    )
                ),
                window=types.WindowClientCapabilities(work_done_progress=True),
            ),
            initialization_options={
                "settings": {"interpreter": sys.executable, "refineInBackground": False, "editAtOnce": True},
                "trusted": True,
            },
        )
    )
    client.initialized(types.InitializedParams())
    return client, applied


async def wait_for_action(client: LanguageClient, asked: types.CodeActionParams) -> types.CodeAction:
    """The action once the file is analysed. It is asked for by kind: it is offered so whatever it gains."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        for action in await client.text_document_code_action_async(asked) or []:
            if isinstance(action, types.CodeAction) and "Generate NPU" in action.title:
                return action
        await asyncio.sleep(0.05)
    sys.exit("apply: no action was offered")


async def generate(client: LanguageClient, applied: asyncio.Event, file: Path) -> float:
    """Seconds between asking for the code action's command and the applied edit."""
    file.write_text(MODEL)
    uri = file.as_uri()
    document = types.TextDocumentItem(uri, types.LanguageKind.Python, 1, MODEL)
    client.text_document_did_open(types.DidOpenTextDocumentParams(document))
    line = MODEL.splitlines().index("        return torch.softmax(x, dim=-1)")
    spot = types.Range(types.Position(line, 20), types.Position(line, 20))
    asked = types.CodeActionParams(
        types.TextDocumentIdentifier(uri),
        spot,
        types.CodeActionContext(diagnostics=[], only=[types.CodeActionKind.RefactorRewrite]),
    )
    await wait_for_action(client, asked)
    applied.clear()
    started = time.monotonic()
    action = await wait_for_action(client, asked)
    resolved = await client.code_action_resolve_async(action)
    assert resolved.command is not None
    command = types.ExecuteCommandParams(resolved.command.command, resolved.command.arguments)
    running = asyncio.ensure_future(client.workspace_execute_command_async(command))
    await asyncio.wait_for(applied.wait(), PATIENCE_S)
    elapsed = time.monotonic() - started
    await running
    return elapsed


async def measure(home: Path) -> dict[str, float]:
    workspace = home / "workspace"
    workspace.mkdir()
    client, applied = await start(workspace)
    cold = await generate(client, applied, workspace / "first.py")
    warm = await generate(client, applied, workspace / "second.py")
    await client.shutdown_async(None)
    client.exit(None)
    await client.stop()
    return {"cold_s": round(cold, 2), "warm_s": round(warm, 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["EVOKERNEL_HOME"] = folder
        subprocess.run([EVOKERNEL, "doctor", "--prepare"], check=True, stdout=subprocess.DEVNULL)
        summary = asyncio.run(measure(Path(folder)))
    print(f"from code action to applied kernel: cold {summary['cold_s']} s, warm {summary['warm_s']} s")
    if arguments.json:
        arguments.json.write_text(json.dumps({"summary": summary}))


if __name__ == "__main__":
    main()
