"""`python -m fox.engine FD`: the child that holds one model. FD is its end of the parent's socket pair."""

import sys

from fox.engine.worker import main

main(int(sys.argv[1]))
