"""EvoKernel's core: capture, planning, AscendC, twin, verification, memory and synthesis."""

__version__ = "0.1.0"
