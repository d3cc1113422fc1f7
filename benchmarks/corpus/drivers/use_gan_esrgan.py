"""Generator and discriminator of ESRGAN in PyTorch-GAN."""

import torch
from models import Discriminator, GeneratorRRDB

PROJECT = "PyTorch-GAN"
FILE = "implementations/esrgan/models.py"
CHANGES = ({"filters": 4}, {"upsample": 2})


class Both(torch.nn.Module):
    def __init__(self, filters, upsample):
        super().__init__()
        self.generator = GeneratorRRDB(3, filters, 1, upsample)
        self.discriminator = Discriminator((3, 16, 16))

    def forward(self, x):
        image = self.generator(x)
        return image, self.discriminator(image)


def build(filters=8, upsample=1):
    return Both(filters, upsample)


def inputs(batch=2, size=8):
    return (torch.randn(batch, 3, size, size),)


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
