"""The UNet of guided-diffusion, whose attention is always checkpointed."""

import torch
from guided_diffusion.unet import UNetModel

PROJECT = "guided-diffusion"
FILE = "guided_diffusion/unet.py"
OPTIONS = {
    "image_size": 16,
    "in_channels": 3,
    "model_channels": 64,
    "out_channels": 6,
    "num_res_blocks": 1,
    "attention_resolutions": (2,),
    "channel_mult": (1, 2),
    "num_classes": 5,
    "num_heads": 4,
    "use_scale_shift_norm": True,
    "resblock_updown": True,
}
CHANGES = (
    {"use_checkpoint": True},
    {"use_scale_shift_norm": False},
    {"use_new_attention_order": True},
    {"dropout": 0.5},
    {"resblock_updown": False},
)


def build(**changes):
    options = {**OPTIONS, **changes}
    model = UNetModel(**options)
    for parameter in model.parameters():  # the project begins with many zeros, which hide what stands before
        torch.nn.init.normal_(parameter, std=0.1)
    return model


def inputs(batch=2, size=16):
    return (
        torch.randn(batch, 3, size, size),
        torch.randint(0, 1000, (batch,)),
        torch.randint(0, 5, (batch,)),
    )


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
