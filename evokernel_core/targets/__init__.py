"""Target languages, a folder each."""
