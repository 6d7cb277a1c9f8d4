"""The door for people: `python -m dovetail`, and the command `dovetail`."""

from dovetail.cli.app import app


def main() -> None:
    """Run the command line."""
    app(prog_name="dovetail")


if __name__ == "__main__":
    main()
