"""The door for people: `python -m dovetail`, and the command `dovetail`."""

import sys
import traceback

from dovetail.api.depth import allow_deep_json
from dovetail.cli.app import app
from dovetail.cli.streams import UNEXPECTED, guarded_streams


def main() -> None:
    """Run the command line."""
    allow_deep_json()
    with guarded_streams():
        try:
            app(prog_name="dovetail")
        except Exception:  # noqa: BLE001 - whatever it is, no command's own status says it
            traceback.print_exc()
            sys.exit(UNEXPECTED)


if __name__ == "__main__":
    main()
