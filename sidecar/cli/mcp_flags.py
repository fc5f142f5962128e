"""The flags of `agent-sidecar mcp`. Imports little, as all that is needed to say `--help`."""

import argparse
from collections.abc import Callable, Sequence

from sidecar.config_files.places import PROGRAMS

USAGE_OF_ADD = """\
agent-sidecar mcp add NAME [flags] -- COMMAND [ARGUMENTS]
       agent-sidecar mcp add NAME [flags] --url URL"""

AddFlags = Callable[[argparse.ArgumentParser], None]


def add_mcp(parser: argparse.ArgumentParser, add_common: AddFlags) -> None:
    """The actions below `mcp`; each takes what `add_common` adds, too."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, summary, add_flags in (
        ("list", "show the configured servers and where they are configured", _add_list),
        ("add", "put a server into your configuration", _add_add),
        ("remove", "take a server out of your configuration", _add_remove),
        ("test", "start servers as an editor's sidecar would, and say how each did", _add_test),
        ("import", "find the servers of other programs, and put them into your configuration", _add_import),
    ):
        action = actions.add_parser(
            name,
            help=summary,
            description=summary,
            allow_abbrev=False,
            usage=USAGE_OF_ADD if name == "add" else None,
        )
        add_common(action)
        add_flags(action)


def split_command(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Our own arguments, and those after `--` of `mcp add`: a server's command, with flags of its own."""
    given = list(arguments)
    if "--" not in given:
        return given, []
    ours = given[: given.index("--")]
    is_add = "mcp" in ours and "add" in ours[ours.index("mcp") :]
    return (ours, given[len(ours) + 1 :]) if is_add else (given, [])


def _add_list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--status", action="store_true", help="start them and say how each is")
    _add_json(parser)


def _add_add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="what its tools are called by: NAME__tool")
    parser.add_argument(
        "command_line", nargs="*", metavar="COMMAND", help="the program and its arguments; after `--` as they are"
    )
    parser.add_argument("--url", help="a server that is reached over HTTP, in place of a command")
    parser.add_argument(
        "--header", action="append", default=[], metavar="NAME=VALUE", help="sent with every request to --url"
    )
    parser.add_argument(
        "--env", action="append", default=[], metavar="NAME=VALUE", help="a variable that the command gets"
    )
    parser.add_argument("--replace", action="store_true", help="in place of a server of that name")


def _add_remove(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME")


def _add_test(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="NAME", help="which; all, where none is named")
    _add_json(parser)


def _add_import(parser: argparse.ArgumentParser) -> None:
    source = parser.add_mutually_exclusive_group()
    source.add_argument("file", nargs="?", metavar="FILE", help="a file of servers, of whatever program")
    source.add_argument("--from", dest="program", choices=PROGRAMS, help="the files of one program alone")
    parser.add_argument("--yes", action="store_true", help="take all that are found, and ask nothing")
    parser.add_argument("--replace", action="store_true", help="also those whose names are taken")
    _add_json(parser)


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="JSON on stdout, for programs")
