"""What is read from and written to disk: tables, their preparation, model files, run folders."""
