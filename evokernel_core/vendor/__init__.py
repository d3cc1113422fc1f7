"""The vendor's fused operators: where a region is one of them, and what that operator costs."""
