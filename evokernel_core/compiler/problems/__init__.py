"""What a kernel of one kind computes: a record each."""
