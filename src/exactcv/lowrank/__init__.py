"""Features in place of a kernel matrix, for data whose kernel matrix would not fit.

``rows`` says where rows come from, ``passes`` goes over all of them (here or on a cluster),
``small`` solves what is left near the margin, ``wide`` sparse rows with more columns than there is
room for matrices of them; ``methods.py`` says which way a task goes.  Not here: reading the user's
request and making a result of the answers (``crossval``).
"""
