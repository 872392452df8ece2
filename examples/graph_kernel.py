"""
A kernel of one's own: graphs
=============================

Molecules, social networks and circuits are graphs, and have no columns.  What an SVM needs is a
similarity of any two of them: the Weisfeiler-Lehman kernel counts the neighbourhoods that two
graphs have in common.  ``kernel="precomputed"`` takes its matrix; one matrix serves every fold and
every C.
"""

# %%
# Two kinds of small worlds: rings of neighbours in which few or many edges were rewired at random.
from collections import Counter

import matplotlib.pyplot as plt
import numpy as np

import exactcv

rng = np.random.default_rng(0)


def small_world(rewired: float, n: int = 30) -> np.ndarray:
    """The adjacency matrix of a ring; every node has had four neighbours."""
    graph = np.zeros((n, n), dtype=bool)
    for step in (1, 2):
        for i in range(n):
            j = (i + step) % n
            while rng.random() < rewired or j == i:
                j = rng.integers(n)
            graph[i, j] = graph[j, i] = True
    return graph


y = np.arange(120) % 2
graphs = [small_world(0.35 if label else 0.5) for label in y]


# %%
# Each node starts with its degree for a name; in every round it is renamed by its own name and
# those of its neighbours.  The features of a graph are how often each name occurs.
def neighbourhoods(graph: np.ndarray, rounds: int = 1) -> Counter:
    names = [str(degree) for degree in graph.sum(axis=1)]
    found = Counter(names)
    for _ in range(rounds):
        around = [sorted(names[j] for j in np.flatnonzero(row)) for row in graph]
        names = [f"{own}({','.join(near)})" for own, near in zip(names, around, strict=True)]
        found.update(names)
    triangles = int(np.trace(np.linalg.matrix_power(graph.astype(int), 3)) // 6)
    found["triangle"] = triangles
    return found


features = [neighbourhoods(graph) for graph in graphs]
K = np.array([[sum(a[name] * b[name] for name in a) for b in features] for a in features], float)
scale = 1.0 / np.sqrt(np.diag(K))
K *= scale[:, None] * scale  # so that large graphs do not count for more

# %%
# Leave-one-out over the whole path, and what is left of it after tuning.
result = exactcv.cross_validate(K, y, kernel="precomputed", Cs=np.geomspace(0.1, 1e4, 30))
print(result.summary())

# %%
result.plot()
plt.show()
