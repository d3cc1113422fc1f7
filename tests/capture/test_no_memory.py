"""Code that takes the memory of tensors, which those of a capture lack: a reason, and an agent that lives."""

from __future__ import annotations

from pathlib import Path

import pytest

from evokernel_core.capture.client import AgentClient
from evokernel_core.compiler.coverage import covered_ops, single_ops
from evokernel_core.targets.ascendc.target import ASCENDC

TAKEN = {
    "to_dlpack": "z = torch.from_dlpack(torch.to_dlpack(x))",
    "of_utils": "z = torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x))",
    "imported": "z = torch.from_dlpack(to_dlpack(x * 2))",
    "from_dlpack": "z = torch.from_dlpack(x)",
    "method": "z = torch.from_dlpack(x.__dlpack__())",
    "private": "z = torch._C._from_dlpack(torch._C._to_dlpack(x * 2))",
    "numpys": "z = torch.from_numpy(np.from_dlpack(x * 2).copy())",
    "numpy": "z = torch.from_numpy(x.numpy().copy())",
    "asarray": "z = torch.as_tensor(np.asarray(x))",
    "of_array": "z = torch.as_tensor(x.__array__())",
    "tolist": "z = torch.tensor(x.tolist())",
    "loader": "z = torch.stack([*torch.utils.data.DataLoader(x, batch_size=None)])",
    "data_ptr": "z = x * (x.data_ptr() % 4)",
    "of_storage": "z = x * (x.untyped_storage().data_ptr() % 4)",
    "of_typed": "z = x * (x.storage().data_ptr() % 4)",
    "from_address": "z = x * (ctypes.c_float * 4).from_address(x.data_ptr())[0]",
    "moved": "z = torch.empty_like(x)\n        ctypes.memmove(z.data_ptr(), x.data_ptr(), 4)",
    "string_at": "z = x * len(ctypes.string_at(x.data_ptr(), 4))",
    "pointer": "z = x * ctypes.cast(x.data_ptr(), ctypes.POINTER(ctypes.c_float))[0]",
    "storage_bytes": "z = x * len(bytes(x.untyped_storage()))",
    "of_pickle": "z = pickle.loads(pickle.dumps(x))",
}
FEW = ("to_dlpack", "imported", "from_dlpack", "method", "data_ptr", "of_storage", "from_address", "moved")
"""Those that ended the agent, in every run."""
HEAD = """
import ctypes
import pickle

import numpy as np
import torch
from torch.utils.dlpack import to_dlpack


"""
MODEL = """class Model(torch.nn.Module):
    def forward(self, x):
        {body}
        return z * 2 + 1


def get_inputs():
    return [torch.randn(8, 16)]
"""


@pytest.mark.parametrize("programs", [False, True], ids=["single kernels", "programs"])
@pytest.mark.parametrize(
    "name", [name if name in FEW else pytest.param(name, marks=pytest.mark.thorough) for name in TAKEN]
)
def test_the_agent_says_what_it_cannot_follow(
    name: str, programs: bool, agent: AgentClient, tmp_path: Path
) -> None:
    text = HEAD + MODEL.format(body=TAKEN[name])
    ops = covered_ops(ASCENDC) if programs else single_ops(ASCENDC)
    regions = agent.capture(tmp_path / "model.py", text, ops, whole=programs)
    reasons = [str(region.reason) for region in regions if region.task is None]
    known = ("reads the memory", "takes a tensor out of PyTorch", "depends on the values")
    assert any(words in reason for reason in reasons for words in known) or not programs, reasons
