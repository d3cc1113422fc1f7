"""Reads and runs the public asc-devkit samples as their own READMEs and CMake files say."""
