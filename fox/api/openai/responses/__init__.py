"""POST /v1/responses and what is kept of it. An answer in items, made of a chat's."""
