"""The words of the command line: commands, flags, and what it says of itself. Imports little, to start quickly."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from sidecar import __version__
from sidecar.cli.mcp_flags import add_mcp, split_command

PROGRAM = "agent-sidecar"

WRONG_USAGE = 2

ABOUT = """\
Agent Sidecar {version}: an agent in a process beside your editor. It runs the
whole tool loop for a host: model, tools, permissions and MCP servers.

  {program} demo         see it work: no key, no network, ten seconds
  {program} ask "..."    one prompt, with OPENAI_API_KEY or a local Ollama
  {program} chat         the same, as a conversation
  {program} doctor       check configuration, keys, model, MCP servers
  {program} mcp import   take over the MCP servers of your other programs

An editor spawns it and speaks to its stdin and stdout, as to a language server:

  Neovim     vim.lsp.start({{ name = "agent", cmd = {{ "{program}" }} }})
  VS Code    new LanguageClient("agent", {{ command: "{program}" }}, {{}})
  Python     from sidecar_client import Sidecar

More: {program} --help, and protocol.md for what goes over the wire.
"""


def about() -> str:
    """What a person sees who starts it without arguments."""
    return ABOUT.format(program=PROGRAM, version=__version__)


class _Parser(argparse.ArgumentParser):
    """Complains in one line."""

    def error(self, message: str) -> NoReturn:
        sys.stderr.write(f"{PROGRAM}: error: {message}; see `{self.prog} --help`\n")
        sys.exit(WRONG_USAGE)


def build_parser() -> argparse.ArgumentParser:
    """Every command and its flags; the result holds `command`, None where there was none."""
    parser = _Parser(
        prog=PROGRAM,
        description="An agent behind LSP framing: tools, permissions, MCP servers and the model loop.",
        epilog="Without a command it serves when stdin is a pipe, and explains itself on a terminal.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    _add_common(parser, default=None, tools="tools")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)
    for name, summary, add_flags in (
        ("serve", "serve one host on stdin and stdout, as an editor starts it", None),
        ("ask", "answer one prompt here", _add_ask),
        ("chat", "hold a conversation here", _add_run),
        ("demo", "show a whole run: no key, no network", None),
        ("doctor", "check configuration, keys, model and MCP servers", _add_json),
        ("sessions", "list, show, export and delete what is kept of conversations", _add_sessions),
        ("audit", "show which tools were called, who allowed it, and what came of it", _add_audit),
        ("mcp", "list, add, test and import MCP servers", _add_mcp),
        ("trust", "let a workspace's own configuration be used", _add_trust),
        (
            "schema",
            "print the protocol as JSON Schema, or as types for TypeScript and Lua",
            _add_schema,
        ),
        ("conformance", "judge an implementation of the protocol by its rules", _add_conformance),
    ):
        command = commands.add_parser(name, help=summary, description=summary, allow_abbrev=False)
        # argparse lets a command's flags replace those before it; tools are all meant.
        _add_common(command, default=argparse.SUPPRESS, tools="more_tools")
        if add_flags:
            add_flags(command)
    return parser


def serve_flags(flags: argparse.Namespace) -> list[str]:
    """The flags of the sidecar that a command spawns; paths hold wherever it works."""
    files = {"--config": flags.config, "--log-file": flags.log_file}
    words = {"--model": flags.model, "--log-level": flags.log_level}
    given = {**{flag: file and str(Path(file).absolute()) for flag, file in files.items()}, **words}
    entries = [*(flags.tools or ()), *getattr(flags, "more_tools", ())]
    tools = [str(Path(entry).absolute()) if entry.endswith(".py") else entry for entry in entries]
    return [
        *(word for flag, value in given.items() if value is not None for word in (flag, value)),
        *(word for entry in tools for word in ("--tools", entry)),
    ]


def _add_common(parser: argparse.ArgumentParser, *, default: str | None, tools: str) -> None:
    group = parser.add_argument_group("settings")
    group.add_argument("--model", default=default, help="which model, as provider/model")
    group.add_argument(
        "--config", default=default, metavar="FILE", help="configuration in place of the user's own"
    )
    group.add_argument(
        "--cwd",
        default=default,
        metavar="FOLDER",
        help="the workspace; default: the folder you are in, with `serve` what the host names",
    )
    group.add_argument(
        "--tools",
        dest=tools,
        action="append",
        default=default,
        metavar="FILE.py",
        help="tools of your own, also as module:name or entry-point:NAME; may be repeated",
    )
    group.add_argument("--log-file", default=default, metavar="FILE", help="where the sidecar writes its log")
    group.add_argument(
        "--log-level", default=default, choices=("debug", "info", "warning", "error"), help="default: warning"
    )


def _add_mcp(parser: argparse.ArgumentParser) -> None:
    add_mcp(parser, lambda action: _add_common(action, default=argparse.SUPPRESS, tools="more_tools"))


def _add_trust(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folder", nargs="?", metavar="FOLDER", help="the workspace; default: the folder you are in"
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--list", action="store_true", help="show what was decided about which folder")
    what.add_argument("--revoke", action="store_true", help="forget what was decided about the folder")
    what.add_argument("--yes", action="store_true", help="trust what is shown, and ask nothing")
    _add_json(parser)


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="JSON on stdout, for programs")


def _add_schema(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--format",
        choices=("json-schema", "meta-model", "typescript", "lua"),
        default="json-schema",
        help="default: json-schema",
    )


def _add_conformance(parser: argparse.ArgumentParser) -> None:
    whom = parser.add_mutually_exclusive_group()
    whom.add_argument("--server", metavar="COMMAND", help="judge the sidecar that this command line starts")
    whom.add_argument("--host", metavar="COMMAND", help="judge the host that this command line starts")
    parser.add_argument("--list", action="store_true", help="print the rules, and judge nothing")
    parser.add_argument(
        "--rule", action="append", default=[], metavar="ID", help="judge by this rule alone; may be repeated"
    )
    parser.add_argument(
        "--patience", type=_positive, default=10, metavar="SECS", help="how long to wait for a frame; default: 10"
    )
    parser.add_argument("--json", metavar="FILE", help="write the report as JSON, too; `-` is stdout")
    parser.add_argument("--junit", metavar="FILE", help="write the report as JUnit XML, too")


def _add_sessions(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action", nargs="?", default="list", choices=("list", "show", "export", "delete"), help="default: list"
    )
    parser.add_argument("id", nargs="?", metavar="ID", help="a session, by its id or how that begins")
    parser.add_argument(
        "--format", choices=("json", "markdown", "replay"), help="of show and export; default: markdown"
    )
    parser.add_argument("--limit", type=_positive, default=50, metavar="N", help="how many to list; default: 50")
    _add_json(parser)


def _add_audit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--session", metavar="ID", help="calls in this session, by its id or how that begins")
    parser.add_argument("--run", metavar="ID", help="calls of this run")
    parser.add_argument("--tool", metavar="NAME", help="calls of this tool")
    parser.add_argument("--decision", choices=("allow", "ask", "deny"), help="calls that were decided so")
    parser.add_argument("--since", metavar="SPAN", help="calls of the last 30m, 2h, 7d, ...")
    parser.add_argument("--limit", type=_positive, default=100, metavar="N", help="how many; default: 100")
    _add_json(parser)


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--system", metavar="TEXT", help="the system prompt")
    parser.add_argument(
        "--allow",
        action="append",
        default=[],
        metavar="PERMISSION",
        help="do not ask about this permission or tool, such as write, mcp:git or 'git__*'; may be repeated",
    )
    parser.add_argument("--max-turns", type=_positive, metavar="N", help="how many answers of the model at most")
    parser.add_argument(
        "--session", metavar="ID", help="go on with this session, by its id or how that begins; see `sessions`"
    )
    parser.add_argument("--json", action="store_true", help="the raw events on stdout, one a line")


def _add_ask(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "prompt", nargs="*", help="what to ask; `-` stands for stdin, which is also read when nothing is given"
    )
    _add_run(parser)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Raises SystemExit with status 2 for wrong usage, 0 for --help and --version."""
    ours, command_line = split_command(arguments)
    flags = build_parser().parse_args(ours)
    if command_line:
        flags.command_line = [*flags.command_line, *command_line]
    return flags
