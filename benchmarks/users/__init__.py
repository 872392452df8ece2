"""Where users tune: standardised real data, C from 1e-2 to 1e3, gamma around 1 / p, repeated rows.

Here belong the scripts that time whole searches as users run them, beside what users would run
instead.  The papers' own settings belong in ``papers``, the papers' simulation in ``peers``.
"""
