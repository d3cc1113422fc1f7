"""A child process that runs kernels of Triton on the CPU: Triton's front over numpy, many programs at a time.

It needs the standard library, numpy and triton, nothing of ours: the person's environment is not ours. Start
it as ``python -I <this folder>`` with TRITON_INTERPRET=1; it speaks frames (frames.py) on stdin and stdout.
Whoever asks it wrote no kernel: kernels are audited before, and this process is confined and can be killed.
"""
