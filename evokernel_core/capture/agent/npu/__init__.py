"""What the functions of Ascend's extension of PyTorch compute, as compositions of PyTorch for traces."""
