"""HTTP: the app, the answer that owns one generation, and one folder a dialect."""

from fox.api.app import create_app
from fox.api.options import ApiOptions

__all__ = ["ApiOptions", "create_app"]
