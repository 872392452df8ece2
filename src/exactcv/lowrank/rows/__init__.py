"""Where rows come from: arrays, Parquet files, Dask collections, in chunks of fixed order."""
