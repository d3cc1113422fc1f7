"""From a Python function to an FX graph of core ATen with symbolic sizes."""
