"""Ascend chips, their instruction set and the AscendC API."""
