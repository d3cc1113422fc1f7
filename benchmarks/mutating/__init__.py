"""A mutation test of the judge: honest kernels, mutants of them, an oracle that is not the judge."""
