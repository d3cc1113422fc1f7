"""Published rows of the vendor's built-in operators as PyTorch that the author can be asked for."""
