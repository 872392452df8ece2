"""The papers' tables and figures, made again: a folder for each paper, a script for each table."""
