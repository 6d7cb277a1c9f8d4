"""The words: what the cluster says, as pydantic models."""
