"""`python -m laconic`: the command line, where its script is not on the path."""

from laconic.cli import main

main()
