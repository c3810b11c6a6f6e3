"""The entry point of the command.

Exit status: 0 all is well, 1 findings, 2 usage, 3 internal error, 130 interrupted.
"""

from __future__ import annotations

import errno
import importlib
import os
import traceback

import click

from rota.cli.arguments import authors_line
from rota.cli.output import GITHUB, JSON, give, tell
from rota.errors import RotaError, did_you_mean
from rota.version import __version__

FINDINGS, USAGE, INTERNAL, INTERRUPTED = 1, 2, 3, 130
DEBUG = "ROTA_DEBUG"
GROUPS = {
    "Make a schedule, prove it, look at it": ("kernels", "check", "show", "diff", "predict", "trace"),
    "Ship it": ("emit", "audit", "run", "memory", "lint", "improve"),
    "Judge many": ("report",),
    "Choose among many": ("tune", "calibrate"),
    "Look up": ("explain", "targets"),
}
"""The commands by what they are for, in the order in which help lists them."""
COMMANDS = tuple(name for names in GROUPS.values() for name in names)
_MODULES = {
    "diff": "show",
    "trace": "show",
    "audit": "run",
    "calibrate": "predict",
    "kernels": "look_up",
    "explain": "look_up",
    "targets": "look_up",
    "report": "verdict_report",
}
"""Commands that are defined in a module of another name.  A module is imported when its command is asked for."""


class Guarded(click.Group):
    """Commands whose errors become exit statuses."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*COMMANDS, *sorted(set(super().list_commands(ctx)) - set(COMMANDS))]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in COMMANDS and cmd_name not in self.commands:
            module = importlib.import_module(f"rota.cli.commands.{_MODULES.get(cmd_name, cmd_name)}")
            self.add_command(getattr(module, cmd_name))
        return super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not name.startswith("-") and not ctx.resilient_parsing and self.get_command(ctx, name) is None:
            ctx.fail("\n".join((f"no command is named {name!r}", *did_you_mean(name, COMMANDS))))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, names in GROUPS.items():
            found = [(name, command) for name in names if (command := self.get_command(ctx, name)) is not None]
            room = formatter.width - 6 - max(map(len, COMMANDS))
            with formatter.section(title):
                formatter.write_dl([(name, command.get_short_help_str(room)) for name, command in found])

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; findings are data where JSON was asked for."""
        try:
            return super().invoke(ctx)
        except RotaError as error:
            if ctx.meta.get(JSON, False) or ctx.meta.get(GITHUB, False):
                give("", {"ok": False, "findings": error.findings})
            else:
                tell(str(error))
            ctx.exit(FINDINGS)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except KeyboardInterrupt:
            tell("interrupted")
            ctx.exit(INTERRUPTED)
        except (Exception, SystemExit) as error:  # only a kernel's own code says sys.exit
            if isinstance(error, OSError) and error.errno == errno.EPIPE:  # `rota show ... | head`
                raise
            if os.environ.get(DEBUG):
                traceback.print_exc()
            tell(_describe_unexpected(error))
            ctx.exit(USAGE if authors_line(error) else INTERNAL)


def _describe_unexpected(error: BaseException) -> str:
    what = f"{type(error).__name__}: {error}"
    line = authors_line(error)
    if line is not None:
        return f"error in {line}: {what}   ({DEBUG}=1 shows the traceback)"
    return f"internal error: {what}   ({DEBUG}=1 shows the traceback; please report it)"


@click.group(
    cls=Guarded,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="\b\nA KERNEL is a name that `rota kernels` lists, file.py:Name or package.module:Name."
    "\nExit status: 0 all is well, 1 findings, 2 usage, 3 internal error.",
)
@click.version_option(__version__, prog_name="rota")
@click.pass_context
def main(context: click.Context) -> None:
    """Software-pipeline GPU kernel loops, without a GPU.

    Declare what one iteration does; rota derives dependencies, order, waits, barriers, prologue and epilogue, and
    proves the result for every trip count. check, show and diff take compiled kernels too, whoever compiled them.
    """
    if os.environ.get("NO_COLOR"):  # https://no-color.org
        context.color = False
