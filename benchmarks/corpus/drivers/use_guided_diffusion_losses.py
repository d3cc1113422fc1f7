"""The likelihoods of guided-diffusion, which are functions."""

import torch
from guided_diffusion import losses

PROJECT = "guided-diffusion"
FILE = "guided_diffusion/losses.py"
CHANGES = ({"scale": 3.0},)


class Likelihood(torch.nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.tensor(scale))

    def forward(self, image, means, log_scales):
        divergence = losses.normal_kl(means, log_scales, 0.0, 0.0)
        likelihood = losses.discretized_gaussian_log_likelihood(
            image, means=means * self.scale, log_scales=log_scales
        )
        return divergence, likelihood


def build(scale=0.5):
    return Likelihood(scale)


def inputs(batch=2, size=8):
    image, means, log_scales = torch.randn(3, batch, 3, size, size)
    return (image.clamp(-1, 1), means, log_scales * 0.1 - 2)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
