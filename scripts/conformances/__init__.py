"""How fox does on the test suites of others: `scripts/conformance`."""
