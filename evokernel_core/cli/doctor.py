"""``evokernel doctor``."""
