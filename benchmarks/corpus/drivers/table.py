"""The drivers of models that one call with options makes: ``python table.py NAME`` builds and calls one.

Each row is a function that gives the model's inputs, under the entry's name. All other drivers are scripts
beside this file. What a model is made of is imported when its driver is asked for.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

import torch

DRIVERS: dict[str, Driver] = {}
"""By the entry's name."""


class Driver:
    """``project`` has ``file``, whose model is ``NAME`` of that module, or ``MODULE:NAME``; so is the class
    ``config`` that takes the ``options`` where the model does not. ``changes``: other options to try.
    ``make``: how else a model comes of its options, its class and that of its configuration."""

    def __init__(
        self,
        project: str,
        file: str,
        model: str,
        config: str = "",
        *,
        options: Mapping[str, Any],
        changes: Sequence[Mapping[str, Any]] = (),
        make: Callable[..., Any] | None = None,
    ) -> None:
        self.project, self.file, self.OPTIONS, self.CHANGES = project, file, options, changes
        self._make = make or _made
        self._names = [name for name in (model, config) if name]
        self.inputs: Callable[..., Any]

    def __call__(self, inputs: Callable[..., Any]) -> Callable[..., Any]:
        """Registers the row that it decorates."""
        self.inputs = inputs
        DRIVERS[inputs.__name__] = self
        return inputs

    def load(self) -> Driver:
        """Imports the model."""
        own = self.file.removesuffix(".py").replace("/", ".")
        parts = [name.rpartition(":") for name in self._names]
        self._classes = [getattr(import_module(module or own), name) for module, _, name in parts]
        return self

    def build(self, **changes: Any) -> Any:
        return self._make({**self.OPTIONS, **changes}, *self._classes)


def _made(options, model, config=None):
    return model(**options) if config is None else model(config(**options))


class Continued(torch.nn.Module):
    """A prompt and then the tokens behind it, as the project's generation calls the model."""

    def __init__(self, options, model):
        super().__init__()
        self.model = model(options)

    def forward(self, tokens):
        self.model.reset_kv_cache()
        parts = (slice(0, -3), slice(-3, -2), slice(-2, -1))
        return [self.model(tokens[:, part], use_cache=True) for part in parts]


def _of_cifar(options, model, block):
    return model(block, [1, 1, 1, 1], **options)


def _of_blocks(options, model, decode):
    """The constructor empties its blocks."""
    return model(**{**options, "block_args": decode(options["block_args"])})


def _with_block(options, model, block):
    return model(block=block, **options)


_GPT = {
    "vocab_size": 64,
    "context_length": 32,
    "emb_dim": 32,
    "n_heads": 4,
    "n_layers": 2,
    "drop_rate": 0.1,
    "qkv_bias": False,
}
_LANGUAGE_MODEL = {
    "vocab_size": 64,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
}
_SWIN = {
    "img_size": 32,
    "patch_size": 2,
    "embed_dim": 32,
    "depths": [2, 2],
    "num_heads": [2, 4],
    "window_size": 4,
    "num_classes": 10,
}
_VIT = {
    "image_size": 32,
    "patch_size": 8,
    "num_classes": 10,
    "dim": 64,
    "depth": 2,
    "heads": 4,
    "mlp_dim": 128,
}
_CLIP = {
    "embed_dim": 32,
    "image_resolution": 32,
    "vision_patch_size": 8,
    "context_length": 16,
    "vocab_size": 64,
    "transformer_width": 64,
    "transformer_heads": 4,
    "transformer_layers": 2,
}
_LLAMA = {
    "dim": 64,
    "n_layers": 2,
    "n_heads": 4,
    "n_kv_heads": 2,
    "vocab_size": 64,
    "multiple_of": 32,
    "max_seq_len": 32,
}
_SERIES = {
    "task_name": "long_term_forecast",
    "seq_len": 32,
    "label_len": 16,
    "pred_len": 16,
    "enc_in": 4,
    "dec_in": 4,
    "c_out": 4,
    "d_model": 32,
    "d_ff": 64,
    "n_heads": 4,
    "e_layers": 2,
    "d_layers": 1,
    "factor": 1,
    "dropout": 0.1,
    "activation": "gelu",
    "embed": "timeF",
    "freq": "h",
    "moving_avg": 5,
    "top_k": 2,
    "num_kernels": 2,
    "num_class": 3,
}
_SERIES_CHANGES = [{"dropout": 0.4}, {"n_heads": 2}, {"activation": "relu"}]


def _series(batch):
    """Numbers, their times, and those of the forecast."""
    return tuple(torch.randn(batch, 32, 4) for _ in range(4))


@Driver(
    "attention-is-all-you-need-pytorch",
    "transformer/SubLayers.py",
    "transformer.Models:Transformer",
    options={
        "n_src_vocab": 64,
        "n_trg_vocab": 64,
        "src_pad_idx": 0,
        "trg_pad_idx": 0,
        "d_word_vec": 64,
        "d_model": 64,
        "d_inner": 128,
        "n_layers": 2,
        "n_head": 4,
        "d_k": 16,
        "d_v": 16,
    },
    changes=[{"dropout": 0.4}, {"scale_emb_or_prj": "none"}, {"n_head": 2}],
)
def attention_is_all_you_need(batch=2, size=16):
    return (torch.randint(1, 64, (batch, size)), torch.randint(1, 64, (batch, 7)))


@Driver(
    "axial_attention",
    "axial_attention/axial_attention.py",
    "AxialAttention",
    options={"dim": 32, "dim_index": 1, "heads": 4, "num_dimensions": 2},
    changes=[{"sum_axial_out": False}, {"heads": 2}],
)
def axial_attention(batch=2, size=16):
    return (torch.randn(batch, 32, size, size),)


@Driver(
    "CLIP",
    "clip/model.py",
    "CLIP",
    options={**_CLIP, "vision_layers": 2, "vision_width": 64},
    changes=[{"transformer_heads": 2}, {"vision_layers": (1, 1, 1, 1), "vision_width": 16}],
)
def clip(batch=3, size=32):
    return (torch.randn(batch, 3, size, size), torch.randint(0, 64, (batch, 16)))


@Driver(
    "CLIP",
    "clip/model.py",
    "CLIP",
    options={**_CLIP, "vision_layers": (1, 1, 1, 1), "vision_width": 16},
    changes=[{"transformer_heads": 2}, {"vision_layers": (2, 1, 1, 1)}],
)
def clip_resnet(batch=3, size=32):
    return (torch.randn(batch, 3, size, size), torch.randint(0, 64, (batch, 16)))


@Driver(
    "conformer",
    "conformer/conformer.py",
    "ConformerBlock",
    options={"dim": 64, "dim_head": 16, "heads": 4, "ff_mult": 2, "conv_kernel_size": 7},
    changes=[{"attn_dropout": 0.3}, {"conv_causal": True}, {"ff_dropout": 0.4}],
)
def conformer(batch=2, size=16):
    return (torch.randn(batch, size, 64),)


@Driver(
    "ConvNeXt",
    "models/convnext.py",
    "ConvNeXt",
    options={"depths": [1, 1, 1, 1], "dims": [16, 32, 48, 64], "num_classes": 10},
    changes=[{"drop_path_rate": 0.3}, {"layer_scale_init_value": 0.0}, {"head_init_scale": 0.5}],
)
def convnext(batch=2, size=64):
    return (torch.randn(batch, 3, size, size),)


@Driver(
    "denoising_diffusion_pytorch",
    "denoising_diffusion_pytorch/denoising_diffusion_pytorch.py",
    "Unet",
    options={"dim": 16, "dim_mults": (1, 2), "flash_attn": False, "attn_heads": 2, "attn_dim_head": 8},
    changes=[{"dropout": 0.3}, {"learned_variance": True}, {"sinusoidal_pos_emb_theta": 100}],
)
def denoising_diffusion(batch=2, size=16):
    return (torch.randn(batch, 3, size, size), torch.randint(0, 100, (batch,)))


@Driver(
    "diffusers",
    "diffusers/models/attention.py",
    "BasicTransformerBlock",
    options={"dim": 64, "num_attention_heads": 4, "attention_head_dim": 16, "cross_attention_dim": 32},
    changes=[{"dropout": 0.4}, {"activation_fn": "gelu"}, {"norm_eps": 0.3}, {"attention_bias": True}],
)
def diffusers_attention(batch=2, size=16):
    return {"hidden_states": torch.randn(batch, size, 64), "encoder_hidden_states": torch.randn(batch, 7, 32)}


@Driver(
    "diffusers",
    "diffusers/models/transformers/dit_transformer_2d.py",
    "DiTTransformer2DModel",
    options={
        "num_attention_heads": 4,
        "attention_head_dim": 16,
        "in_channels": 4,
        "out_channels": 8,
        "num_layers": 2,
        "sample_size": 16,
        "num_embeds_ada_norm": 10,
    },
    changes=[{"dropout": 0.4}, {"norm_eps": 0.3}, {"attention_bias": False}],
)
def diffusers_dit(batch=2, size=16):
    return {
        "hidden_states": torch.randn(batch, 4, 16, 16),
        "timestep": torch.randint(0, 1000, (batch,)),
        "class_labels": torch.randint(0, 10, (batch,)),
    }


@Driver(
    "diffusers",
    "diffusers/models/resnet.py",
    "ResnetBlock2D",
    options={"in_channels": 32, "out_channels": 64, "temb_channels": 16, "groups": 8},
    changes=[
        {"dropout": 0.4},
        {"non_linearity": "gelu"},
        {"eps": 0.3},
        {"output_scale_factor": 2.0},
        {"time_embedding_norm": "scale_shift"},
    ],
)
def diffusers_resnet(batch=2, size=16):
    return (torch.randn(batch, 32, size, size), torch.randn(batch, 16))


@Driver(
    "diffusers",
    "diffusers/models/unets/unet_2d_condition.py",
    "UNet2DConditionModel",
    options={
        "sample_size": 16,
        "block_out_channels": (32, 32),
        "layers_per_block": 1,
        "down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"),
        "up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D"),
        "cross_attention_dim": 16,
        "attention_head_dim": 8,
        "norm_num_groups": 8,
    },
    changes=[{"dropout": 0.4}, {"act_fn": "gelu"}, {"norm_eps": 0.3}, {"freq_shift": 1}],
)
def diffusers_unet(batch=2, size=16):
    return (torch.randn(batch, 4, size, size), torch.randint(0, 1000, (batch,)), torch.randn(batch, 6, 16))


@Driver(
    "diffusers",
    "diffusers/models/autoencoders/vae.py",
    "Encoder",
    options={
        "in_channels": 3,
        "out_channels": 4,
        "down_block_types": ("DownEncoderBlock2D", "DownEncoderBlock2D"),
        "block_out_channels": (16, 32),
        "norm_num_groups": 8,
    },
    changes=[{"layers_per_block": 1}, {"act_fn": "gelu"}, {"double_z": False}],
)
def diffusers_vae(batch=2, size=32):
    return (torch.randn(batch, 3, size, size),)


@Driver(
    "DiT",
    "models.py",
    "DiT",
    options={
        "input_size": 16,
        "patch_size": 4,
        "in_channels": 4,
        "hidden_size": 64,
        "depth": 2,
        "num_heads": 4,
        "num_classes": 10,
    },
    changes=[{"class_dropout_prob": 0.5}, {"mlp_ratio": 2.0}, {"learn_sigma": False}],
)
def dit(batch=2, size=16):
    return (torch.randn(batch, 4, 16, 16), torch.randint(0, 1000, (batch,)), torch.randint(0, 10, (batch,)))


@Driver(
    "efficient-kan",
    "src/efficient_kan/kan.py",
    "efficient_kan.kan:KAN",
    options={"layers_hidden": [16, 32, 8]},
    changes=[{"grid_size": 3}, {"spline_order": 2}, {"scale_base": 0.5}],
)
def efficient_kan(batch=2, size=16):
    return (torch.randn(batch * size, 16),)


@Driver("fairscale", "fairscale/nn/moe/top2gate.py", "Top2Gate", options={"model_dim": 32, "num_experts": 4})
def fairscale_moe(batch=2, size=16):
    return (torch.randn(batch * size, 32),)


@Driver(
    "pytorch-examples",
    "fast_neural_style/neural_style/transformer_net.py",
    "neural_style.transformer_net:TransformerNet",
    options={},
)
def fast_neural_style(batch=2, size=16):
    return (torch.randn(batch, 3, size, size),)


@Driver(
    "PyTorch-GAN",
    "implementations/srgan/models.py",
    "models:GeneratorResNet",
    options={"n_residual_blocks": 1},
    changes=[{"n_residual_blocks": 2}],
)
def gan_srgan(batch=2, size=8):
    return (torch.randn(batch, 3, size, size),)


@Driver(
    "linear_attention_transformer",
    "linear_attention_transformer/linear_attention_transformer.py",
    "LinearAttentionTransformer",
    options={"dim": 64, "depth": 2, "max_seq_len": 64, "heads": 4},
    changes=[{"causal": True, "blindspot_size": 1}, {"ff_dropout": 0.4}, {"ff_glu": True}],
)
def linear_attention_transformer(batch=2, size=16):
    return (torch.randn(batch, size, 64),)


@Driver(
    "llama2.c",
    "model.py",
    "Transformer",
    "ModelArgs",
    options={**_LLAMA, "dropout": 0.0},
    changes=[{"dropout": 0.3}, {"norm_eps": 0.3}, {"n_kv_heads": 4}],
)
def llama2_c(batch=2, size=16):
    return (torch.randint(0, 64, (batch, size)), torch.randint(0, 64, (batch, size)))


@Driver(
    "local_attention",
    "local_attention/transformer.py",
    "LocalTransformer",
    options={
        "num_tokens": 64,
        "max_seq_len": 64,
        "dim": 64,
        "depth": 2,
        "causal": True,
        "local_attn_window_size": 8,
        "heads": 4,
        "dim_head": 16,
    },
    changes=[{"ff_dropout": 0.4}, {"use_xpos": True}, {"causal": False}],
)
def local_attention(batch=2, size=16):
    return (torch.randint(0, 64, (batch, size)),)


@Driver(
    "lpips",
    "lpips/lpips.py",
    "LPIPS",
    options={"pretrained": False, "pnet_rand": True, "net": "squeeze", "verbose": False},
    changes=[{"use_dropout": False}, {"spatial": True}, {"lpips": False}],
)
def lpips(batch=2, size=64):
    return (torch.randn(batch, 3, size, size), torch.randn(batch, 3, size, size))


@Driver(
    "mamba-minimal",
    "model.py",
    "Mamba",
    "ModelArgs",
    options={"d_model": 32, "n_layer": 2, "vocab_size": 64, "d_state": 8},
    changes=[{"conv_bias": False}, {"bias": True}, {"expand": 3}],
)
def mamba_minimal(batch=2, size=8):
    return (torch.randint(0, 64, (batch, size)),)


@Driver(
    "mambapy",
    "mambapy/mamba.py",
    "Mamba",
    "MambaConfig",
    options={"d_model": 32, "n_layers": 2, "d_state": 8},
    changes=[{"pscan": False}, {"rms_norm_eps": 0.3}, {"inner_layernorms": True}, {"bias": True}],
)
def mambapy(batch=2, size=16):
    return (torch.randn(batch, size, 32),)


@Driver(
    "minGPT",
    "mingpt/model.py",
    "GPT",
    "mingpt.utils:CfgNode",
    options={
        "model_type": None,
        "block_size": 32,
        "vocab_size": 64,
        "n_layer": 2,
        "n_head": 4,
        "n_embd": 64,
        "embd_pdrop": 0.1,
        "resid_pdrop": 0.1,
        "attn_pdrop": 0.1,
    },
    changes=[{"attn_pdrop": 0.0}, {"n_head": 2}],
)
def mingpt(batch=2, size=16):
    return (torch.randint(0, 64, (batch, size)),)


@Driver(
    "mixture_of_experts",
    "mixture_of_experts/mixture_of_experts.py",
    "MoE",
    options={"dim": 32, "num_experts": 4, "hidden_dim": 64},
    changes=[{"second_policy_train": "all"}, {"capacity_factor_train": 2.0}, {"loss_coef": 0.5}],
)
def mixture_of_experts(batch=2, size=16):
    return (torch.randn(batch, size, 32),)


@Driver("pytorch-examples", "mnist/main.py", "main:Net", options={})
def mnist_example(batch=2, size=16):
    return (torch.randn(batch, 1, 28, 28),)


@Driver(
    "monai",
    "monai/networks/nets/attentionunet.py",
    "AttentionUnet",
    options={"spatial_dims": 2, "in_channels": 1, "out_channels": 2, "channels": (8, 16), "strides": (2,)},
    changes=[{"dropout": 0.4}],
)
def monai_attentionunet(batch=2, size=32):
    return (torch.randn(batch, 1, size, size),)


@Driver(
    "monai",
    "monai/networks/nets/restormer.py",
    "Restormer",
    options={
        "spatial_dims": 2,
        "in_channels": 1,
        "out_channels": 1,
        "dim": 16,
        "num_blocks": (1, 1),
        "heads": (1, 2),
        "num_refinement_blocks": 1,
    },
    changes=[{"bias": True}, {"ffn_expansion_factor": 2.0}, {"flash_attention": True}],
)
def monai_restormer(batch=2, size=32):
    return (torch.randn(batch, 1, size, size),)


@Driver(
    "monai",
    "monai/networks/nets/segresnet.py",
    "SegResNet",
    options={
        "spatial_dims": 2,
        "in_channels": 1,
        "out_channels": 2,
        "init_filters": 8,
        "blocks_down": (1, 1),
        "blocks_up": (1,),
    },
    changes=[{"dropout_prob": 0.4}, {"upsample_mode": "deconv"}],
)
def monai_segresnet(batch=2, size=32):
    return (torch.randn(batch, 1, size, size),)


@Driver(
    "monai",
    "monai/networks/blocks/selfattention.py",
    "SABlock",
    options={"hidden_size": 64, "num_heads": 4},
    changes=[
        {"dropout_rate": 0.4},
        {"qkv_bias": True},
        {"save_attn": True},
        {"causal": True, "sequence_length": 16},
    ],
)
def monai_selfattention(batch=2, size=16):
    return (torch.randn(batch, size, 64),)


@Driver(
    "monai",
    "monai/networks/nets/unet.py",
    "UNet",
    options={
        "spatial_dims": 2,
        "in_channels": 1,
        "out_channels": 2,
        "channels": (8, 16, 32),
        "strides": (2, 2),
        "num_res_units": 1,
    },
    changes=[{"dropout": 0.4}, {"act": "relu"}, {"bias": False}],
)
def monai_unet(batch=2, size=32):
    return (torch.randn(batch, 1, size, size),)


@Driver(
    "nanoGPT",
    "model.py",
    "GPT",
    "GPTConfig",
    options={"block_size": 32, "vocab_size": 64, "n_layer": 2, "n_head": 4, "n_embd": 64, "dropout": 0.1},
    changes=[{"dropout": 0.0}, {"bias": False}, {"n_head": 2}],
)
def nanogpt(batch=2, size=16):
    return (torch.randint(0, 64, (batch, size)), torch.randint(0, 64, (batch, size)))


@Driver(
    "nystrom_attention",
    "nystrom_attention/nystrom_attention.py",
    "Nystromformer",
    options={"dim": 64, "depth": 2, "heads": 4, "dim_head": 16, "num_landmarks": 8},
    changes=[{"attn_dropout": 0.4}, {"pinv_iterations": 3}, {"attn_values_residual": False}],
)
def nystrom_attention(batch=2, size=16):
    return (torch.randn(batch, size, 64),)


@Driver(
    "open_clip",
    "open_clip/transformer.py",
    "VisionTransformer",
    options={
        "image_size": 32,
        "patch_size": 8,
        "width": 64,
        "layers": 2,
        "heads": 4,
        "mlp_ratio": 2.0,
        "output_dim": 32,
    },
    changes=[{"ls_init_value": 0.1}, {"patch_dropout": 0.5}, {"pool_type": "avg"}],
)
def open_clip(batch=2, size=32):
    return (torch.randn(batch, 3, size, size),)


@Driver(
    "perceiver_pytorch",
    "perceiver_pytorch/perceiver_pytorch.py",
    "Perceiver",
    options={
        "num_freq_bands": 4,
        "depth": 2,
        "max_freq": 10.0,
        "num_latents": 8,
        "latent_dim": 32,
        "cross_heads": 1,
        "latent_heads": 4,
        "cross_dim_head": 16,
        "latent_dim_head": 16,
        "num_classes": 10,
    },
    changes=[{"attn_dropout": 0.3}, {"weight_tie_layers": True}, {"fourier_encode_data": False}],
)
def perceiver(batch=2, size=16):
    return (torch.randn(batch, size, size, 3),)


@Driver(
    "performer_pytorch",
    "performer_pytorch/performer_pytorch.py",
    "SelfAttention",
    options={"dim": 64, "heads": 4, "dim_head": 16, "nb_features": 32},
    changes=[{"dropout": 0.4}, {"generalized_attention": True}, {"qkv_bias": True}],
)
def performer(batch=2, size=16):
    return (torch.randn(batch, size, 64),)


@Driver(
    "pytorch-cifar",
    "models/shufflenetv2.py",
    "ShuffleNetV2",
    options={"net_size": 0.5},
    changes=[{"net_size": 1}],
)
def pytorch_cifar_shufflenetv2(batch=2, size=32):
    return (torch.randn(batch, 3, size, size),)


@Driver(
    "pytorch-llama",
    "model.py",
    "Transformer",
    "ModelArgs",
    options={**_LLAMA, "max_batch_size": 8, "device": "cpu"},
    changes=[{"norm_eps": 0.3}, {"n_kv_heads": 4}, {"ffn_dim_multiplier": 1.5}],
)
def pytorch_llama(batch=2, position=5):
    return (torch.randint(0, 64, (batch, 1)), position)


@Driver(
    "Pytorch-UNet",
    "unet/unet_parts.py",
    "unet.unet_model:UNet",
    options={"n_channels": 3, "n_classes": 2},
    changes=[{"bilinear": True}],
)
def pytorch_unet(batch=1, size=32):
    return (torch.randn(batch, 3, size, size),)


@Driver(
    "reformer_pytorch",
    "reformer_pytorch/reformer_pytorch.py",
    "LSHSelfAttention",
    options={"dim": 64, "heads": 4, "bucket_size": 4, "n_hashes": 2},
    changes=[{"dropout": 0.4}, {"causal": True}, {"attn_chunks": 2}],
)
def reformer(batch=2, size=16):
    return (torch.randn(batch, size, 64),)


@Driver(
    "segment_anything",
    "segment_anything/modeling/image_encoder.py",
    "ImageEncoderViT",
    options={
        "img_size": 32,
        "patch_size": 4,
        "embed_dim": 32,
        "depth": 2,
        "num_heads": 4,
        "out_chans": 16,
        "use_rel_pos": True,
        "window_size": 4,
    },
    changes=[{"qkv_bias": False}, {"use_rel_pos": False}, {"window_size": 3}],
)
def segment_anything(batch=2, size=32):
    return (torch.randn(batch, 3, size, size),)


@Driver(
    "segmentation_models_pytorch",
    "segmentation_models_pytorch/decoders/unet/decoder.py",
    "segmentation_models_pytorch:Unet",
    options={
        "encoder_name": "resnet18",
        "encoder_weights": None,
        "decoder_channels": (32, 16, 16, 8, 8),
        "classes": 2,
    },
    changes=[{"decoder_attention_type": "scse"}, {"decoder_use_norm": False}, {"activation": "sigmoid"}],
)
def segmentation_models(batch=2, size=64):
    return (torch.randn(batch, 3, size, size),)


@Driver(
    "Swin-Transformer",
    "models/swin_transformer.py",
    "SwinTransformer",
    options=_SWIN,
    changes=[{"qk_scale": 0.7}, {"qkv_bias": False}, {"ape": True}, {"drop_path_rate": 0.9}],
)
def swin(batch=2, size=32):
    return (torch.randn(batch, 3, size, size),)


@Driver(
    "Swin-Transformer",
    "models/swin_mlp.py",
    "SwinMLP",
    options=_SWIN,
    changes=[{"ape": True}, {"drop_path_rate": 0.9}, {"drop_rate": 0.5}],
)
def swin_mlp(batch=2, size=32):
    return (torch.randn(batch, 3, size, size),)


@Driver(
    "Swin-Transformer",
    "models/swin_transformer_v2.py",
    "SwinTransformerV2",
    options=_SWIN,
    changes=[
        {"qkv_bias": False},
        {"ape": True},
        {"drop_path_rate": 0.9},
        {"pretrained_window_sizes": [2, 2]},
    ],
)
def swin_v2(batch=2, size=32):
    return (torch.randn(batch, 3, size, size),)


@Driver(
    "Time-Series-Library",
    "models/Autoformer.py",
    "Model",
    "types:SimpleNamespace",
    options=_SERIES,
    changes=_SERIES_CHANGES,
)
def time_series_autoformer(batch=2, size=16):
    return _series(batch)


@Driver(
    "Time-Series-Library",
    "models/DLinear.py",
    "Model",
    "types:SimpleNamespace",
    options=_SERIES,
    changes=_SERIES_CHANGES,
)
def time_series_dlinear(batch=2, size=16):
    return _series(batch)


@Driver(
    "Time-Series-Library",
    "models/iTransformer.py",
    "Model",
    "types:SimpleNamespace",
    options=_SERIES,
    changes=_SERIES_CHANGES,
)
def time_series_itransformer(batch=2, size=16):
    return _series(batch)


@Driver(
    "Time-Series-Library",
    "models/PatchTST.py",
    "Model",
    "types:SimpleNamespace",
    options=_SERIES,
    changes=_SERIES_CHANGES,
)
def time_series_patchtst(batch=2, size=16):
    return _series(batch)


@Driver(
    "Time-Series-Library",
    "models/TimesNet.py",
    "Model",
    "types:SimpleNamespace",
    options=_SERIES,
    changes=_SERIES_CHANGES,
)
def time_series_timesnet(batch=2, size=16):
    return _series(batch)


@Driver(
    "timm",
    "timm/models/cait.py",
    "Cait",
    options={"img_size": 32, "patch_size": 8, "embed_dim": 64, "depth": 2, "num_heads": 4, "num_classes": 10},
    changes=[{"drop_rate": 0.2}, {"init_values": 0.5}],
)
def timm_cait(batch=2, size=32):
    return (torch.randn(batch, 3, size, size),)


@Driver(
    "timm",
    "timm/models/convnext.py",
    "ConvNeXt",
    options={"depths": (1, 1, 1, 1), "dims": (16, 32, 48, 64), "num_classes": 10},
    changes=[{"ls_init_value": None}, {"conv_mlp": True}, {"drop_path_rate": 0.3}, {"norm_eps": 0.1}],
)
def timm_convnext(batch=2, size=64):
    return (torch.randn(batch, 3, size, size),)


@Driver(
    "timm",
    "timm/models/eva.py",
    "Eva",
    options={
        "img_size": 32,
        "patch_size": 8,
        "embed_dim": 64,
        "depth": 2,
        "num_heads": 4,
        "num_classes": 10,
        "use_rot_pos_emb": True,
        "swiglu_mlp": True,
        "use_abs_pos_emb": False,
    },
    changes=[{"qkv_bias": False}, {"swiglu_mlp": False}, {"init_values": 0.1}, {"drop_path_rate": 0.3}],
)
def timm_eva(batch=2, size=32):
    return (torch.randn(batch, 3, size, size),)


@Driver(
    "timm",
    "timm/models/mlp_mixer.py",
    "MlpMixer",
    options={"img_size": 32, "patch_size": 8, "num_blocks": 2, "embed_dim": 64, "num_classes": 10},
    changes=[{"drop_rate": 0.2}, {"drop_path_rate": 0.3}, {"global_pool": "avg"}],
)
def timm_mlp_mixer(batch=2, size=32):
    return (torch.randn(batch, 3, size, size),)


@Driver(
    "timm",
    "timm/models/swin_transformer.py",
    "SwinTransformer",
    options={
        "img_size": 32,
        "patch_size": 2,
        "embed_dim": 32,
        "depths": (2, 2),
        "num_heads": (2, 4),
        "window_size": 4,
        "num_classes": 10,
    },
    changes=[{"qkv_bias": False}, {"drop_path_rate": 0.5}, {"mlp_ratio": 2.0}],
)
def timm_swin_transformer(batch=2, size=32):
    return (torch.randn(batch, 3, size, size),)


@Driver(
    "timm",
    "timm/models/vision_transformer.py",
    "VisionTransformer",
    options={
        "img_size": 32,
        "patch_size": 8,
        "embed_dim": 64,
        "depth": 2,
        "num_heads": 4,
        "num_classes": 10,
        "dynamic_img_size": True,
    },
    changes=[
        {"qkv_bias": False},
        {"num_heads": 2},
        {"drop_rate": 0.2},
        {"init_values": 0.1},
        {"global_pool": "avg"},
    ],
)
def timm_vision_transformer(batch=2, size=32):
    return (torch.randn(batch, 3, size, size),)


@Driver(
    "torch_geometric",
    "torch_geometric/nn/conv/gat_conv.py",
    "GATConv",
    options={"in_channels": 16, "out_channels": 8, "heads": 4},
    changes=[{"negative_slope": 0.7}, {"dropout": 0.4}, {"concat": False}],
)
def torch_geometric_gat_conv(batch=2, size=16):
    return (torch.randn(batch * size, 16), torch.randint(0, batch * size, (2, 4 * size)))


@Driver(
    "torch_geometric",
    "torch_geometric/nn/conv/gcn_conv.py",
    "GCNConv",
    options={"in_channels": 16, "out_channels": 32},
    changes=[{"bias": False}, {"improved": True}, {"add_self_loops": False}],
)
def torch_geometric_gcn_conv(batch=2, size=16):
    return (torch.randn(batch * size, 16), torch.randint(0, batch * size, (2, 4 * size)))


@Driver(
    "torch_geometric",
    "torch_geometric/nn/conv/transformer_conv.py",
    "TransformerConv",
    options={"in_channels": 16, "out_channels": 8, "heads": 4},
    changes=[{"beta": True}, {"dropout": 0.4}, {"root_weight": False}],
)
def torch_geometric_transformer_conv(batch=2, size=16):
    return (torch.randn(batch * size, 16), torch.randint(0, batch * size, (2, 4 * size)))


@Driver(
    "torchvision",
    "torchvision/models/densenet.py",
    "DenseNet",
    options={"growth_rate": 8, "block_config": (2, 2), "num_init_features": 16, "num_classes": 10},
    changes=[{"drop_rate": 0.4}, {"memory_efficient": True}],
)
def torchvision_densenet(batch=2, size=64):
    return (torch.randn(batch, 3, size, size),)


@Driver(
    "torchvision",
    "torchvision/models/googlenet.py",
    "GoogLeNet",
    options={"num_classes": 10, "aux_logits": False, "init_weights": False},
    changes=[{"dropout": 0.6}, {"transform_input": True}],
)
def torchvision_googlenet(batch=2, size=64):
    return (torch.randn(batch, 3, size, size),)


@Driver(
    "torchvision",
    "torchvision/models/mobilenetv2.py",
    "MobileNetV2",
    options={"num_classes": 10, "width_mult": 0.25},
    changes=[{"dropout": 0.6}, {"width_mult": 0.5}],
)
def torchvision_mobilenetv2(batch=2, size=64):
    return (torch.randn(batch, 3, size, size),)


@Driver(
    "torchvision",
    "torchvision/models/swin_transformer.py",
    "SwinTransformer",
    options={
        "patch_size": [2, 2],
        "embed_dim": 32,
        "depths": [2, 2],
        "num_heads": [2, 4],
        "window_size": [4, 4],
        "num_classes": 10,
    },
    changes=[{"dropout": 0.3}, {"mlp_ratio": 2.0}, {"stochastic_depth_prob": 0.5}],
)
def torchvision_swin_transformer(batch=2, size=32):
    return (torch.randn(batch, 3, size, size),)


@Driver(
    "torchvision",
    "torchvision/models/vision_transformer.py",
    "VisionTransformer",
    options={
        "image_size": 32,
        "patch_size": 8,
        "num_layers": 2,
        "num_heads": 4,
        "hidden_dim": 64,
        "mlp_dim": 128,
        "num_classes": 10,
    },
    changes=[{"dropout": 0.3}, {"attention_dropout": 0.3}, {"num_heads": 2}],
)
def torchvision_vision_transformer(batch=2, size=32):
    return (torch.randn(batch, 3, size, size),)


@Driver(
    "transformers",
    "transformers/models/bert/modeling_bert.py",
    "BertModel",
    "transformers.models.bert.configuration_bert:BertConfig",
    options={
        "vocab_size": 64,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "max_position_embeddings": 64,
    },
    changes=[
        {"hidden_dropout_prob": 0.5},
        {"hidden_act": "relu"},
        {"layer_norm_eps": 0.3},
        {"attn_implementation": "eager"},
    ],
)
def transformers_bert(batch=2, size=16):
    return (torch.randint(0, 64, (batch, size)),)


@Driver(
    "transformers",
    "transformers/models/clip/modeling_clip.py",
    "CLIPVisionModel",
    "transformers.models.clip.configuration_clip:CLIPVisionConfig",
    options={
        "image_size": 32,
        "patch_size": 8,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
    },
    changes=[{"hidden_act": "gelu"}, {"layer_norm_eps": 0.3}, {"attention_dropout": 0.4}],
)
def transformers_clip(batch=2, size=32):
    return (torch.randn(batch, 3, size, size),)


@Driver(
    "transformers",
    "transformers/models/deepseek_v3/modeling_deepseek_v3.py",
    "DeepseekV3ForCausalLM",
    "transformers.models.deepseek_v3.configuration_deepseek_v3:DeepseekV3Config",
    options={
        "vocab_size": 64,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "moe_intermediate_size": 32,
        "n_routed_experts": 8,
        "n_group": 2,
        "topk_group": 1,
        "num_experts_per_tok": 2,
        "first_k_dense_replace": 1,
        "q_lora_rank": 32,
        "kv_lora_rank": 16,
        "qk_rope_head_dim": 8,
        "qk_nope_head_dim": 16,
        "v_head_dim": 16,
        "max_position_embeddings": 64,
    },
    changes=[{"rms_norm_eps": 0.3}, {"routed_scaling_factor": 1.0}, {"norm_topk_prob": False}],
)
def transformers_deepseek_v3(batch=2, size=16):
    return (torch.randint(0, 64, (batch, size)),)


@Driver(
    "transformers",
    "transformers/models/gemma/modeling_gemma.py",
    "GemmaForCausalLM",
    "transformers.models.gemma.configuration_gemma:GemmaConfig",
    options={**_LANGUAGE_MODEL, "head_dim": 16},
    changes=[{"rms_norm_eps": 0.3}, {"attention_bias": True}],
)
def transformers_gemma(batch=2, size=16):
    return (torch.randint(0, 64, (batch, size)),)


@Driver(
    "transformers",
    "transformers/models/gpt2/modeling_gpt2.py",
    "GPT2LMHeadModel",
    "transformers.models.gpt2.configuration_gpt2:GPT2Config",
    options={"vocab_size": 64, "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 64},
    changes=[
        {"resid_pdrop": 0.0},
        {"activation_function": "relu"},
        {"layer_norm_epsilon": 0.3},
        {"scale_attn_by_inverse_layer_idx": True},
        {"attn_implementation": "eager"},
    ],
)
def transformers_gpt2(batch=2, size=16):
    return (torch.randint(0, 64, (batch, size)),)


@Driver(
    "transformers",
    "transformers/models/llama/modeling_llama.py",
    "LlamaForCausalLM",
    "transformers.models.llama.configuration_llama:LlamaConfig",
    options=_LANGUAGE_MODEL,
    changes=[
        {"rms_norm_eps": 0.3},
        {"hidden_act": "gelu"},
        {"attention_bias": True},
        {"attn_implementation": "eager"},
        {"num_key_value_heads": 4},
    ],
)
def transformers_llama(batch=2, size=16):
    return (torch.randint(0, 64, (batch, size)),)


@Driver(
    "transformers",
    "transformers/models/mamba/modeling_mamba.py",
    "MambaForCausalLM",
    "transformers.models.mamba.configuration_mamba:MambaConfig",
    options={"vocab_size": 64, "hidden_size": 32, "state_size": 8, "num_hidden_layers": 2},
    changes=[
        {"layer_norm_epsilon": 0.3},
        {"use_bias": True},
        {"residual_in_fp32": False},
        {"hidden_act": "gelu"},
    ],
)
def transformers_mamba(batch=2, size=8):
    return (torch.randint(0, 64, (batch, size)),)


@Driver(
    "transformers",
    "transformers/models/mistral/modeling_mistral.py",
    "MistralForCausalLM",
    "transformers.models.mistral.configuration_mistral:MistralConfig",
    options=_LANGUAGE_MODEL,
    changes=[{"rms_norm_eps": 0.3}, {"sliding_window": 4}, {"hidden_act": "gelu"}],
)
def transformers_mistral(batch=2, size=16):
    return (torch.randint(0, 64, (batch, size)),)


@Driver(
    "transformers",
    "transformers/models/mixtral/modeling_mixtral.py",
    "MixtralForCausalLM",
    "transformers.models.mixtral.configuration_mixtral:MixtralConfig",
    options={**_LANGUAGE_MODEL, "num_local_experts": 4},
    changes=[{"rms_norm_eps": 0.3}, {"num_experts_per_tok": 1}, {"router_jitter_noise": 0.1}],
)
def transformers_mixtral(batch=2, size=16):
    return (torch.randint(0, 64, (batch, size)),)


@Driver(
    "transformers",
    "transformers/models/qwen2/modeling_qwen2.py",
    "Qwen2ForCausalLM",
    "transformers.models.qwen2.configuration_qwen2:Qwen2Config",
    options=_LANGUAGE_MODEL,
    changes=[{"rms_norm_eps": 0.3}, {"hidden_act": "gelu"}, {"attn_implementation": "eager"}],
)
def transformers_qwen2(batch=2, size=16):
    return (torch.randint(0, 64, (batch, size)),)


@Driver(
    "transformers",
    "transformers/models/t5/modeling_t5.py",
    "T5Model",
    "transformers.models.t5.configuration_t5:T5Config",
    options={"vocab_size": 64, "d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_heads": 4},
    changes=[{"dropout_rate": 0.5}, {"layer_norm_epsilon": 0.3}, {"feed_forward_proj": "gated-gelu"}],
)
def transformers_t5(batch=2, size=16):
    return {
        "input_ids": torch.randint(0, 64, (batch, size)),
        "decoder_input_ids": torch.randint(0, 64, (batch, 5)),
    }


@Driver(
    "transformers",
    "transformers/models/vit/modeling_vit.py",
    "ViTModel",
    "transformers.models.vit.configuration_vit:ViTConfig",
    options={
        "image_size": 32,
        "patch_size": 8,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
    },
    changes=[{"hidden_dropout_prob": 0.5}, {"qkv_bias": False}, {"layer_norm_eps": 0.3}],
)
def transformers_vit(batch=2, size=32):
    return (torch.randn(batch, 3, size, size),)


@Driver(
    "vector_quantize_pytorch",
    "vector_quantize_pytorch/finite_scalar_quantization.py",
    "FSQ",
    options={"levels": [8, 5, 5], "dim": 32},
    changes=[{"preserve_symmetry": True}, {"noise_dropout": 0.5}],
)
def vector_quantize(batch=2, size=16):
    return (torch.randn(batch, size, 32),)


@Driver(
    "vit_pytorch",
    "vit_pytorch/cait.py",
    "CaiT",
    options={**_VIT, "cls_depth": 1},
    changes=[{"dropout": 0.3}, {"layer_dropout": 0.3}],
)
def vit_pytorch_cait(batch=2, size=32):
    return (torch.randn(batch, 3, size, size),)


@Driver(
    "vit_pytorch",
    "vit_pytorch/cct.py",
    "CCT",
    options={
        "img_size": 32,
        "embedding_dim": 64,
        "n_conv_layers": 1,
        "num_layers": 2,
        "num_heads": 4,
        "mlp_ratio": 2.0,
        "num_classes": 10,
    },
    changes=[{"dropout_rate": 0.3}, {"stochastic_depth_rate": 0.5}],
)
def vit_pytorch_cct(batch=2, size=32):
    return (torch.randn(batch, 3, size, size),)


@Driver(
    "vit_pytorch",
    "vit_pytorch/deepvit.py",
    "DeepViT",
    options=_VIT,
    changes=[{"dropout": 0.3}, {"pool": "mean"}],
)
def vit_pytorch_deepvit(batch=2, size=32):
    return (torch.randn(batch, 3, size, size),)


@Driver(
    "vit_pytorch",
    "vit_pytorch/max_vit.py",
    "MaxViT",
    options={"num_classes": 10, "dim": 32, "depth": (1, 1), "dim_head": 16, "window_size": 4},
    changes=[{"dropout": 0.3}, {"mbconv_shrinkage_rate": 0.5}],
)
def vit_pytorch_max_vit(batch=2, size=64):
    return (torch.randn(batch, 3, size, size),)


@Driver(
    "vit_pytorch",
    "vit_pytorch/mobile_vit.py",
    "MobileViT",
    options={
        "image_size": (64, 64),
        "dims": [32, 48, 64],
        "channels": [8, 8, 16, 16, 24, 24, 32, 32, 48, 48, 64],
        "num_classes": 10,
    },
    changes=[{"expansion": 2}, {"depths": (1, 1, 1)}],
)
def vit_pytorch_mobile_vit(batch=2, size=64):
    return (torch.randn(batch, 3, size, size),)


@Driver(
    "vit_pytorch",
    "vit_pytorch/simple_vit.py",
    "SimpleViT",
    options=_VIT,
    changes=[{"heads": 2}, {"dim_head": 32}],
)
def vit_pytorch_simple_vit(batch=2, size=32):
    return (torch.randn(batch, 3, size, size),)


@Driver(
    "vit_pytorch",
    "vit_pytorch/vit.py",
    "ViT",
    options=_VIT,
    changes=[{"dropout": 0.3}, {"emb_dropout": 0.3}, {"pool": "mean"}, {"heads": 2}],
)
def vit_pytorch_vit(batch=2, size=32):
    return (torch.randn(batch, 3, size, size),)


@Driver(
    "pytorch-examples",
    "word_language_model/model.py",
    "model:TransformerModel",
    options={"ntoken": 64, "ninp": 32, "nhead": 4, "nhid": 64, "nlayers": 2},
    changes=[{"dropout": 0.2}],
)
def word_language_model(batch=2, size=16):
    return (torch.randint(0, 64, (size, batch)),)


@Driver(
    "efficientnet_pytorch",
    "efficientnet_pytorch/model.py",
    "efficientnet_pytorch:EfficientNet",
    options={"num_classes": 10, "width_coefficient": 0.25, "depth_coefficient": 0.1},
    changes=[{"dropout_rate": 0.5}, {"drop_connect_rate": 0.5}, {"batch_norm_epsilon": 0.3}],
    make=lambda options, model: model.from_name("efficientnet-b0", **options),
)
def efficientnet_pytorch(batch=2, size=64):
    return (torch.randn(batch, 3, size, size),)


@Driver(
    "nanoGPT",
    "model.py",
    "GPT",
    "model:GPTConfig",
    options={"block_size": 32, "vocab_size": 64, "n_layer": 2, "n_head": 4, "n_embd": 64, "dropout": 0.0},
    changes=[{"dropout": 0.2}, {"bias": False}],
    make=lambda options, model, config: model(config(**options)).eval(),
)
def nanogpt_generation(batch=2, size=16):
    return (torch.randint(0, 64, (batch, size)),)


@Driver(
    "pytorch-cifar",
    "models/densenet.py",
    "DenseNet",
    "Bottleneck",
    options={"num_classes": 10},
    changes=[{"num_classes": 7}],
    make=_of_cifar,
)
def pytorch_cifar_densenet(batch=2, size=32):
    return (torch.randn(batch, 3, size, size),)


@Driver(
    "pytorch-cifar",
    "models/resnet.py",
    "ResNet",
    "BasicBlock",
    options={"num_classes": 10},
    changes=[{"num_classes": 7}],
    make=_of_cifar,
)
def pytorch_cifar_resnet(batch=2, size=32):
    return (torch.randn(batch, 3, size, size),)


@Driver(
    "pytorch-cifar",
    "models/senet.py",
    "SENet",
    "PreActBlock",
    options={"num_classes": 10},
    changes=[{"num_classes": 7}],
    make=_of_cifar,
)
def pytorch_cifar_senet(batch=2, size=32):
    return (torch.randn(batch, 3, size, size),)


@Driver(
    "x_transformers",
    "x_transformers/x_transformers.py",
    "TransformerWrapper",
    "Decoder",
    options={"dim": 64, "depth": 2, "heads": 4, "rotary_pos_emb": True, "use_rmsnorm": True, "ff_glu": True},
    changes=[
        {"use_rmsnorm": False},
        {"ff_glu": False},
        {"attn_dropout": 0.3},
        {"attn_qk_norm": True},
        {"alibi_pos_bias": True, "rotary_pos_emb": False},
    ],
    make=lambda options, model, decoder: model(num_tokens=64, max_seq_len=64, attn_layers=decoder(**options)),
)
def x_transformers(batch=2, size=16):
    return (torch.randint(0, 64, (batch, size)),)


@Driver(
    "LLMs-from-scratch",
    "ch04/03_kv-cache/gpt_with_kv_cache_optimized.py",
    "gpt_with_kv_cache_optimized:GPTModel",
    options={**_GPT, "kv_window_size": 10},
    changes=[{"qkv_bias": True}, {"drop_rate": 0.6}, {"kv_window_size": 32}],
    make=Continued,
)
def llms_gpt_kv_cache(batch=2, size=12):
    return (torch.randint(0, 64, (batch, size)),)


@Driver(
    "LLMs-from-scratch",
    "ch04/05_mla/gpt_with_kv_mla.py",
    "gpt_with_kv_mla:GPTModel",
    options={**_GPT, "latent_dim": 16},
    changes=[{"qkv_bias": True}, {"drop_rate": 0.6}, {"latent_dim": 8}],
    make=Continued,
)
def llms_gpt_mla(batch=2, size=12):
    return (torch.randint(0, 64, (batch, size)),)


@Driver(
    "LLMs-from-scratch",
    "ch04/07_moe/gpt_with_kv_moe.py",
    "gpt_with_kv_moe:GPTModel",
    options={**_GPT, "num_experts": 4, "num_experts_per_tok": 2, "hidden_dim": 32},
    changes=[{"qkv_bias": True}, {"drop_rate": 0.6}, {"num_experts_per_tok": 3}, {"num_experts": 0}],
    make=Continued,
)
def llms_gpt_moe(batch=2, size=12):
    return (torch.randint(0, 64, (batch, size)),)


@Driver(
    "LLMs-from-scratch",
    "ch04/06_swa/gpt_with_kv_swa.py",
    "gpt_with_kv_swa:GPTModel",
    options={**_GPT, "sliding_window_size": 4, "sliding_window_stride": 1},
    changes=[{"qkv_bias": True}, {"drop_rate": 0.6}, {"sliding_window_size": 7}],
    make=Continued,
)
def llms_gpt_swa(batch=2, size=12):
    return (torch.randint(0, 64, (batch, size)),)


@Driver(
    "LLMs-from-scratch",
    "pkg/llms_from_scratch/qwen3.py",
    "llms_from_scratch.qwen3:Qwen3Model",
    options={
        "vocab_size": 64,
        "context_length": 32,
        "emb_dim": 32,
        "n_heads": 4,
        "n_layers": 2,
        "hidden_dim": 64,
        "head_dim": 16,
        "qk_norm": True,
        "n_kv_groups": 2,
        "rope_base": 10_000.0,
        "dtype": torch.bfloat16,
    },
    changes=[
        {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32},
        {"dtype": torch.float32},
        {"qk_norm": False},
        {"rope_base": 100.0},
    ],
    make=lambda options, model: model(options),
)
def llms_qwen3(batch=2, size=12):
    return (torch.randint(0, 64, (batch, size)),)


@Driver(
    "detr",
    "models/transformer.py",
    "Transformer",
    options={
        "d_model": 32,
        "nhead": 4,
        "num_encoder_layers": 1,
        "num_decoder_layers": 2,
        "dim_feedforward": 64,
        "return_intermediate_dec": True,
    },
    changes=[
        {"normalize_before": True},
        {"activation": "gelu"},
        {"dropout": 0.5},
        {"return_intermediate_dec": False},
    ],
)
def detr_transformer(batch=2, size=6):
    mask = torch.zeros(batch, size, size, dtype=torch.bool)
    mask[:, :, size - 2 :] = True
    images, positions = torch.randn(2, batch, 32, size, size)
    return (images, mask, torch.randn(5, 32), positions)


@Driver(
    "timm",
    "timm/models/efficientnet.py",
    "EfficientNet",
    "decode_arch_def",
    options={
        "block_args": [["ds_r1_k3_s1_e1_c16_se0.25"], ["ir_r2_k3_s2_e4_c24_se0.25"]],
        "num_classes": 10,
        "stem_size": 16,
        "num_features": 64,
    },
    changes=[{"drop_rate": 0.3}, {"drop_path_rate": 0.3}],
    make=_of_blocks,
)
def timm_efficientnet(batch=2, size=64):
    return (torch.randn(batch, 3, size, size),)


@Driver(
    "timm",
    "timm/models/mobilenetv3.py",
    "MobileNetV3",
    "decode_arch_def",
    options={
        "block_args": [["ds_r1_k3_s1_e1_c16_nre"], ["ir_r2_k5_s2_e3_c24_se0.25"], ["cn_r1_k1_s1_c64"]],
        "num_classes": 10,
        "stem_size": 16,
        "num_features": 64,
    },
    changes=[{"drop_rate": 0.3}, {"head_bias": False}],
    make=_of_blocks,
)
def timm_mobilenetv3(batch=2, size=64):
    return (torch.randn(batch, 3, size, size),)


@Driver(
    "timm",
    "timm/models/resnet.py",
    "ResNet",
    "BasicBlock",
    options={"layers": [1, 1, 1, 1], "channels": (16, 32, 48, 64), "num_classes": 10, "stem_width": 16},
    changes=[{"drop_rate": 0.3}, {"output_stride": 16}, {"global_pool": "max"}],
    make=_with_block,
)
def timm_resnet(batch=2, size=64):
    return (torch.randn(batch, 3, size, size),)


@Driver(
    "torchvision",
    "torchvision/models/resnet.py",
    "ResNet",
    "Bottleneck",
    options={"layers": [1, 1, 1, 1], "num_classes": 10},
    changes=[{"zero_init_residual": True}, {"groups": 2}],
    make=_with_block,
)
def torchvision_resnet(batch=2, size=64):
    return (torch.randn(batch, 3, size, size),)


if __name__ == "__main__":
    chosen = DRIVERS[sys.argv[1]].load()
    model, given = chosen.build(), chosen.inputs()
    model(**given) if isinstance(given, dict) else model(*given)
