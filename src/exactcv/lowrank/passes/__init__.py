"""One pass over all rows for many solutions at once, in this process or on a Dask cluster."""
