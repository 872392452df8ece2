"""The command line; ``main.py`` has the options, one module each does what a command says."""
