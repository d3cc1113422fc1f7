"""The user's own code beside the captured graph: what the graph may have lost is seen where both run."""
