"""
More rows than memory: Dask and landmarks
=========================================

With 40,000 rows the kernel matrix would take 13 GB.  Nystroem features of a few hundred landmarks
stand in for it, the rows are read chunk by chunk from a Dask array (or a Parquet file), and the
cross-validation is exact for that kernel: every left-out label is proved or solved.
"""

# %%
# Chunks that are made when they are needed; a real array would come from files.
import dask.array as da
import matplotlib.pyplot as plt
import numpy as np

import exactcv

X, y = exactcv.datasets.make_mixture(40_000, 10, random_state=0)
X_lazy, y_lazy = da.from_array(X, chunks=(10_000, 10)), da.from_array(y, chunks=10_000)

# %%
# Leave-one-out, 40,000 folds at 6 values of lambda, for a growing number of landmarks.
sizes = [25, 50, 100]
curves = [
    exactcv.cross_validate(
        X_lazy, y_lazy, approx="nystroem", n_components=m, lambdas=np.geomspace(1e-2, 1e-4, 6),
        random_state=0,
    )
    for m in sizes
]  # fmt: skip
for m, curve in zip(sizes, curves, strict=True):
    least = curve.error[curve.best]
    print(f"{m:>4} landmarks: error {least:.4f}, exact: {curve.certificate.exact}")

# %%
# The error stops falling once there are enough landmarks.
fig, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
for m, curve in zip(sizes, curves, strict=True):
    ax.plot(curve.lambdas, curve.error, ".-", label=f"{m} landmarks")
ax.set(xscale="log", xlabel="lambda", ylabel="left-out error")
ax.invert_xaxis()
ax.legend()
plt.show()
