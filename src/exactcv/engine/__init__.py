"""The moves: a solution carried to another C, or to another set of rows.

Here belong the solvers (active set, working sets, Newton for differentiable losses) and what they
are made of: the path along C, rows and blocks left out, bounds that prove a label without solving.
Not here: what a published method adds to them (``algorithms``), and any judgement of their answers
(``judge``).
"""
