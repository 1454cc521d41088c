"""The benchmarks behind scripts/bench. Each module has a `run()` that prints what it measured."""
