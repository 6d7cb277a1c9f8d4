"""The hands: the only package that imports kubernetes_asyncio."""
