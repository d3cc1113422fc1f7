"""Losses for training a classifier, as plain functions."""

import torch
import torch.nn.functional as F


# evokernel: logits=f32[512,32000], targets=f32[512,32000], smoothing=0.1
def smoothed_cross_entropy(logits, targets, smoothing: float = 0.1):
    """Cross entropy per row against softened one-hot targets."""
    log_probs = F.log_softmax(logits, dim=-1)
    soft = targets * (1.0 - smoothing) + smoothing / logits.shape[-1]
    return -(soft * log_probs).sum(dim=-1)


# evokernel: student=f16[512,4096], teacher=f16[512,4096], temperature=2.0
def distillation_gap(student, teacher, temperature: float):
    """How far the student's probabilities are from the teacher's, row by row."""
    wanted = torch.softmax(teacher / temperature, dim=-1)
    given = torch.softmax(student / temperature, dim=-1)
    return (wanted - given).abs().sum(dim=-1)


# evokernel: prediction=f32[4096,1024], target=f32[4096,1024]
def charbonnier(prediction, target, eps: float = 1e-3):
    """A smooth L1 distance, element by element."""
    difference = prediction - target
    return torch.sqrt(difference * difference + eps * eps)


# evokernel: logits=f32[512,32000]
def z_loss(logits):
    """The penalty that keeps the softmax normaliser near one."""
    normaliser = torch.logsumexp(logits, dim=-1)
    return 1e-4 * normaliser.square()
