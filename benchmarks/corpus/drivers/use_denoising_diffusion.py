"""The UNet of denoising-diffusion-pytorch."""

import torch
from denoising_diffusion_pytorch.denoising_diffusion_pytorch import Unet

PROJECT = "denoising_diffusion_pytorch"
FILE = "denoising_diffusion_pytorch/denoising_diffusion_pytorch.py"
OPTIONS = {"dim": 16, "dim_mults": (1, 2), "flash_attn": False, "attn_heads": 2, "attn_dim_head": 8}
CHANGES = ({"dropout": 0.3}, {"learned_variance": True}, {"sinusoidal_pos_emb_theta": 100})


def build(**changes):
    options = {**OPTIONS, **changes}
    return Unet(**options)


def inputs(batch=2, size=16):
    return (torch.randn(batch, 3, size, size), torch.randint(0, 100, (batch,)))


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
