"""The parts of the verifier service: who may ask, how much, in which order, over which connections."""
