"""Published times of real chips beside what the product models for the same code."""
