"""Which parts of the file one kernel or one program can replace."""
