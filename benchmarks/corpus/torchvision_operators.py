"""Define the schemas of torchvision's compiled operators when torchvision is first imported.

This runs at the start of the corpus's interpreter, so it imports nothing until it must.
"""

import sys

_NMS = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"


class _Definer:
    def find_spec(self, name, path=None, target=None):
        if name == "torchvision":
            sys.meta_path.remove(self)
            import torch

            for operator in ("nms", "qnms"):
                torch.library.define(f"torchvision::{operator}", _NMS)


sys.meta_path.insert(0, _Definer())
