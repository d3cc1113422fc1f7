"""Planted errors, to see that the judge finds them."""
def planted_errors(): return []
