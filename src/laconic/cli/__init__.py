"""The command line, one file for each subcommand.

A failure is one line on stderr and exit code 2; what was written before stays as it was. Tables, and JSON on
demand, go to stdout; progress and messages to stderr. What is slow to import is imported by the command that
needs it, so that `laconic --help` answers at once.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from laconic.cli import bench, calibrate, codecs, compress, decompress, demo, info, pack, unpack, verify
from laconic.errors import LaconicError

app = typer.Typer(
    help="Say it in fewer bytes: lossy compression of tensors.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(compress.compress)
app.command()(decompress.decompress)
app.command()(info.info)
app.command()(pack.pack)
app.command()(unpack.unpack)
app.command()(verify.verify)
app.command()(codecs.codecs)
app.command()(demo.demo)
bench.app.command()(calibrate.calibrate)
bench.app.command()(calibrate.auto)
app.add_typer(bench.app, name="bench")


def _print_version(wanted: bool) -> None:
    if wanted:
        from laconic.version import __version__

        typer.echo(f"laconic {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Options of the command line as a whole."""


def main() -> None:
    """Runs the command line, and exits."""
    try:
        app(prog_name="laconic")
    except (LaconicError, OSError, MemoryError) as error:
        message = " ".join(str(error).split()) or type(error).__name__
        print(f"error: {message}", file=sys.stderr)
        sys.exit(2)
