"""The door for people: `python -m dovetail`, and the command `dovetail`."""

from dovetail.api.depth import allow_deep_json
from dovetail.cli.app import app


def main() -> None:
    """Run the command line."""
    allow_deep_json()
    app(prog_name="dovetail")


if __name__ == "__main__":
    main()
