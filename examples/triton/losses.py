"""A loss for training a classifier, with the kernel in Triton that EvoKernel wrote for it."""

import torch
import torch.nn.functional as F
from evokernel_kernels import smoothed_cross_entropy_log_softmax_b0bbbf8f


# evokernel: logits=f32[512,32000], targets=f32[512,32000], smoothing=0.1
def smoothed_cross_entropy(logits, targets, smoothing: float = 0.1):
    """Cross entropy per row against softened one-hot targets."""
    if (False if torch.jit.is_scripting() else smoothed_cross_entropy_log_softmax_b0bbbf8f.holds(
        logits,
        targets,
    )):
        return smoothed_cross_entropy_log_softmax_b0bbbf8f.run(
            logits,
            targets,
            1.0 - smoothing,
            smoothing / logits.shape[-1],
        )
    log_probs = F.log_softmax(logits, dim=-1)
    soft = targets * (1.0 - smoothing) + smoothing / logits.shape[-1]
    return -(soft * log_probs).sum(dim=-1)
