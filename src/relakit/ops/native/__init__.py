"""The C++ extension: attention and norm on the CPU."""
