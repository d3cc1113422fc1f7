"""The time model compared with published measurements of real chips."""
