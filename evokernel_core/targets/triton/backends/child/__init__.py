"""What runs in the person's interpreter, which has torch and triton and nothing else of ours.

``compile`` turns jit functions into cubins and needs no GPU; ``judge`` launches cubins on a GPU and times
them. No module here imports another package than the standard library, torch and triton, and no process has
both: where a candidate's Python is imported nothing is judged, and where cubins are launched no candidate's
Python is.
"""
