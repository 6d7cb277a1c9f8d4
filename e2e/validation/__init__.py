"""`dovetail plan`'s judgement of objects beside the API server's, on objects that nobody thought of."""
