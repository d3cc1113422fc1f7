"""What a program of the person's own builds and calls: noted while it runs, made anew in a capture."""
