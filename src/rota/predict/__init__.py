"""Whole problems: takes a kernel's predicted loop and a problem's size, gives its time, what it consists of, a band."""
