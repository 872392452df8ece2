"""What the commands of ``exactcv`` do; ``cli.py`` has their options."""
