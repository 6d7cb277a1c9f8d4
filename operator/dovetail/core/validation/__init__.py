"""Objects as the API server of Kubernetes 1.37 takes or refuses them, for `dovetail plan`.

The operator does not come here: it sees only what the API server took.
"""

from dovetail.core.validation.admission import ADMIN_LABEL, Admission, admit, is_stored
from dovetail.core.validation.faults import Fault

__all__ = ["ADMIN_LABEL", "Admission", "Fault", "admit", "is_stored"]
