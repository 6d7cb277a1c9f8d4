"""The hands: the only folder that talks to the API server; it speaks plain JSON."""
