"""Features in place of a kernel matrix, for data whose kernel matrix would not fit.

``rows`` says where rows come from, ``passes`` goes over all of them (here or on a cluster),
``small`` solves what is left near the margin.  Not here: reading the user's request and making a
result of the answers (``crossval``).
"""
