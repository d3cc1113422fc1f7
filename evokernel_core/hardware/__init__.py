"""Devices as data, and what bounds a computation on them."""
