"""CEL as kube-scheduler evaluates it; the only package that knows celpy."""
