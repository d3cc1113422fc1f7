"""The current CUDA device as what judges need of it; tests put the CPU in its place."""

from __future__ import annotations

from typing import Any


class Cuda:
    """torch's current CUDA device and stream."""

    name = "cuda"

    def __init__(self, torch: Any) -> None:
        self.torch = torch

    def stream(self) -> int:
        """The handle of torch's current stream."""
        return int(self.torch.cuda.current_stream().cuda_stream)

    def wait(self) -> None:
        """For everything that was enqueued. Raises torch's errors, of launches that went wrong too."""
        self.torch.cuda.synchronize()
