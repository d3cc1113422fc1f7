"""A first run on an NPU host: what `evokernel doctor --npu` tries, step by step."""
