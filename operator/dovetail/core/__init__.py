"""The mind: pure functions and values that decide; no Kopf, client, logger, clock or async."""
