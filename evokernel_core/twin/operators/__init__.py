"""Operator packages as vendors write them: kernels in ``op_kernel``, definition and tiling in ``op_host``."""
