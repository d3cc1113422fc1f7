"""What rows of docs/results/h200.jsonl call systems and classes of precision."""

from __future__ import annotations

AS_LEFT, STRICT, HALF = "as_left", "strict", "half"
"""PyTorch's flags as it sets them; without TF32; what is right as half types are and not as float32 is."""
OURS, EAGER, COMPILE, TUNED = "ours", "eager", "compile", "max-autotune"
MODES = (EAGER, COMPILE, TUNED)
"""How the problem's own file runs, none with CUDA graphs; ``TUNED`` is timed for problems that were drawn."""
TUNED_MODE = "max-autotune-no-cudagraphs"
"""Of torch.compile."""
