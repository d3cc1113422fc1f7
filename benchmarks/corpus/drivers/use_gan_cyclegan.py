"""Generator and discriminator of CycleGAN in PyTorch-GAN."""

import torch
from models import Discriminator, GeneratorResNet

PROJECT = "PyTorch-GAN"
FILE = "implementations/cyclegan/models.py"
CHANGES = ({"blocks": 2},)


class Both(torch.nn.Module):
    def __init__(self, blocks):
        super().__init__()
        self.generator = GeneratorResNet((3, 32, 32), blocks)
        self.discriminator = Discriminator((3, 32, 32))

    def forward(self, x):
        image = self.generator(x)
        return image, self.discriminator(image)


def build(blocks=1):
    return Both(blocks)


def inputs(batch=1, size=32):
    return (torch.randn(batch, 3, size, size),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
