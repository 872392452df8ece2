"""scikit-learn's ``cross_val_predict``, ``cross_val_score`` and ``GridSearchCV``, exactly.

Data flows one way: ``models`` reads the estimators, ``splits`` the folds, ``plan`` sorts the
candidates by what they can share, ``solve`` computes decision values, ``votes`` turns them into
labels, ``scores`` into figures; ``functions`` and ``grid_search`` are the doors.
"""
