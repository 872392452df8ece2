"""What benchmarks of several rooms share; nothing here is started by hand."""
