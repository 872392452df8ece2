"""The door: ``cross_validate``, and the one assembly line (``run.py``) behind all of them.

Here a request becomes tasks for a method, several classes become pairs, left-out values become
scores and probabilities, and everything becomes a result.  Not here: scikit-learn's conventions
(``estimators``).
"""
