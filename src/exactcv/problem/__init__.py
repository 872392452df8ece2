"""What is solved: the problem, its losses and targets, kernels, gamma, folds and grid.

Input is read and checked here, once; nothing below checks again.  Not here: anything that solves.
"""
