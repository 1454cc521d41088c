"""fox: one command that turns a machine into an LLM server."""

__version__ = "0.1.0"
