"""The head of an image classifier: pooled features, an embedding, and class probabilities."""

import torch
from torch import nn
from torch.nn import functional as F


class CNNHead(nn.Module):
    """Feature maps (batch, channels, height, width) to class probabilities and an embedding."""

    def __init__(self, channels: int = 256, embedding: int = 512, classes: int = 1000):
        super().__init__()
        self.conv = nn.Conv2d(channels, embedding, kernel_size=1)
        self.norm = nn.LayerNorm(embedding)
        self.act = nn.GELU()
        self.project = nn.Linear(embedding, embedding)
        self.classifier = nn.Linear(embedding, classes)
        self.temperature = 0.7
        self.alpha = nn.Parameter(torch.zeros(embedding))

    def forward(self, features):
        maps = F.hardswish(self.conv(features))
        pooled = F.adaptive_avg_pool2d(maps, 1).flatten(1)

        # normalise, bend, and add a learned shift
        hidden = self.act(self.norm(pooled))
        hidden = hidden + torch.tanh(self.alpha) * pooled

        embedding = self.project(hidden)
        unit = embedding / embedding.norm(p=2, dim=-1, keepdim=True).clamp(min=1e-6)
        logits = self.classifier(unit)
        probabilities = F.softmax(logits / self.temperature, dim=-1)
        return probabilities, unit


def get_init_inputs():
    return [256, 512, 1000]


def get_inputs():
    return [torch.randn(64, 256, 14, 14)]
