"""When to act: Kopf handlers, each a sentence."""
