"""Parts of benchmarks/editor.py."""
