"""What a kernel in AscendC brings into its package: a binding in C++, and how it is built."""
