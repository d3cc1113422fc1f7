"""What a trace takes from Python, and the guards under which its kernel may stand for the code."""
