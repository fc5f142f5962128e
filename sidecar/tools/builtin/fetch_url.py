"""`fetch_url`: a page or document of the web, as text."""

from pathlib import Path

from sidecar.permissions.model import Permission
from sidecar.protocol.values import JsonObject, TextBlock, ToolResult
from sidecar.tools.base import BaseTool, ToolContext, ToolOutput
from sidecar.tools.builtin.file_tool import parameters
from sidecar.tools.threads import in_thread

LIMIT_SECS = 45.0
"""For all of it, redirects included. Own choice: below the loop's own limit, so that the error says more."""


class FetchUrl(BaseTool):
    """Result: `url` in the end, `status`, `mediaType`, `text`, `bytes`, `truncated`.

    Only addresses that everybody can reach are asked, whatever names, redirects and DNS say.
    """

    name = "fetch_url"
    description = (
        "Gets a public web page or document by GET and gives it as text; HTML becomes Markdown. Not for "
        "addresses in private networks. A redirect to another host is told, not followed."
    )
    kind = "web"
    category = "web"
    parameters = parameters(
        "url",
        url={"type": "string", "minLength": 1, "maxLength": 4096, "description": "An http or https URL"},
        raw={"type": "boolean", "description": "Give HTML as it is. Default false"},
    )
    required_permissions = (Permission.NETWORK,)
    idempotent = True

    async def rule_arguments(self, args: JsonObject, workspace: tuple[Path, ...]) -> JsonObject:
        """Rules see the URL in the spelling in which it is asked for."""
        from sidecar.web.addresses import RefusedAddressError, plain_url  # noqa: PLC0415

        try:
            return {**args, "url": plain_url(str(args.get("url", "")))}
        except RefusedAddressError:
            return args  # It will be refused in so many words when it is run.

    async def execute(self, args: JsonObject, ctx: ToolContext) -> ToolOutput:
        from sidecar.tools.builtin.page_text import UnfitPageError, text_of  # noqa: PLC0415
        from sidecar.web.addresses import RefusedAddressError  # noqa: PLC0415
        from sidecar.web.fetching import FetchError, fetch  # noqa: PLC0415

        try:
            page = await fetch(args["url"], limit_secs=LIMIT_SECS)
            text = await in_thread(text_of, page, is_raw=args.get("raw", False))
        except (FetchError, RefusedAddressError, UnfitPageError) as error:
            return ToolResult.error(str(error))
        data = {
            "url": page.url,
            "status": page.status,
            "mediaType": page.media_type,
            "text": text,
            "bytes": len(page.body),
            "truncated": page.is_cut,
        }
        if page.redirect is not None:
            message = f"{page.url} redirects to another host: fetch {page.redirect} if that is wanted"
            return ToolResult.error_with_data(message, {"url": page.url, "redirect": page.redirect})
        if page.status >= 400:
            return ToolResult.error_with_data(f"{page.url} answered with status {page.status}", data)
        return ToolResult.success(data, content=(TextBlock(text=text),))
