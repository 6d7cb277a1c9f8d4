"""A randomised run on the real control plane: everything comes, goes and dies, and nothing may be wrong."""
