"""What measures the measurement on a GPU: kernels whose ratio is known, and kernels that only seem fast."""
