"""Whisper's encoder and decoder."""

import torch
from whisper.model import ModelDimensions, Whisper

PROJECT = "whisper"
FILE = "whisper/model.py"
OPTIONS = {
    "n_mels": 16,
    "n_audio_ctx": 16,
    "n_audio_state": 64,
    "n_audio_head": 4,
    "n_audio_layer": 2,
    "n_vocab": 64,
    "n_text_ctx": 32,
    "n_text_state": 64,
    "n_text_head": 4,
    "n_text_layer": 2,
}
CHANGES = ({"n_text_head": 2}, {"n_audio_layer": 1})


def build(**changes):
    options = {**OPTIONS, **changes}
    model = Whisper(ModelDimensions(**options))
    torch.nn.init.normal_(model.decoder.positional_embedding)  # it is memory as it was found
    return model


def inputs(batch=2, size=16):
    return (torch.randn(batch, 16, 32), torch.randint(0, 64, (batch, size)))


if __name__ == "__main__":
    model, given = build(), inputs()
    model(**given) if isinstance(given, dict) else model(*given)
