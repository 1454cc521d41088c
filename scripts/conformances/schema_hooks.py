"""For schemathesis: most requests mean the model that there is, and ask for few tokens."""

from __future__ import annotations

from typing import Any

import schemathesis

from scripts.conformances.server import MODEL

FEW = 4


@schemathesis.hook
def map_body(context: Any, body: Any) -> Any:
    if not isinstance(body, dict):
        return body
    if len(repr(body)) % 5:
        body["model"] = MODEL
    for limit in ("max_tokens", "max_completion_tokens", "max_output_tokens", "n_predict"):
        if isinstance(body.get(limit), int) or limit == "max_tokens":
            body[limit] = FEW
    return body
