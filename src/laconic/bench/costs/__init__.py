"""What encoders cost on this machine, and whether `auto` knows it."""
