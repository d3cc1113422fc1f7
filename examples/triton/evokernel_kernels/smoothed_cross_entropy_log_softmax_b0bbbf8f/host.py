"""Launches the kernels of smoothed_cross_entropy_log_softmax_b0bbbf8f on the device of its tensors; printed from launch.json."""

import torch
import triton

from . import kernel

OUTSIDE = "smoothed_cross_entropy_log_softmax_b0bbbf8f was called outside of its contract: call it only where holds() is true."


def limits(s0, s1):
    """What must hold of the sizes of tensors that the kernel computes."""
    return (s1 <= 32768,)


def results(targets, logits, operand, operand_2):
    """What the operator returns, as yet without values."""
    s0 = targets.size(0)
    return torch.empty((s0,), dtype=torch.float32, device=targets.device)


def run(targets, logits, operand, operand_2):
    """The operator torch.ops.evokernel.smoothed_cross_entropy_log_softmax_b0bbbf8f."""
    if (
        targets.dtype is not torch.float32
        or targets.dim() != 2
        or logits.dtype is not torch.float32
        or logits.dim() != 2
    ):
        raise ValueError(OUTSIDE)
    s0 = targets.size(0)
    s1 = targets.size(1)
    if logits.size(0) != s0 or logits.size(1) != s1 or s0 < 1 or s1 < 1 or not all(limits(s0, s1)):
        raise ValueError(OUTSIDE)
    with torch.cuda.device_of(targets):  # it may not be the current one
        targets = targets.contiguous()
        logits = logits.contiguous()
        output = results(targets, logits, operand, operand_2)
        kernel.smoothed_cross_entropy_log_softmax[(s0,)](
            targets,
            logits,
            output,
            operand,
            operand_2,
            s1,
            COLUMNS=triton.next_power_of_2(s1),
            num_warps=16,
            num_stages=2,
        )
    return output
