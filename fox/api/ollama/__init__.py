"""Ollama's dialect: NDJSON, durations in nanoseconds, errors as one text."""
