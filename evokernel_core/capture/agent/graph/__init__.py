"""From an FX graph to the domain's Graph."""
