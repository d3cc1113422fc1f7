"""The official headers as a judge of kernels: only a compiler reads them, and only its messages are used."""
