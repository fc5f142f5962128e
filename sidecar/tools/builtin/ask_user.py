"""`ask_user`: a question of the model's to the person at the host."""

from sidecar.protocol.values import JsonObject, TextBlock, ToolResult
from sidecar.tools.base import BaseTool, ToolContext, ToolOutput
from sidecar.tools.builtin.file_tool import parameters


class AskUser(BaseTool):
    """Result: `answer`, a text or one of the choices. Needs no permission: a person may decline to answer."""

    name = "ask_user"
    description = (
        "Asks the user a question and gives their answer. For what only they can know or decide; not for "
        "permission to use other tools, which is asked for by itself."
    )
    kind = "custom"
    category = "people"
    parameters = parameters(
        "question",
        question={"type": "string", "minLength": 1, "maxLength": 4000, "description": "The question, in full"},
        choices={
            "type": "array",
            "items": {"type": "string", "minLength": 1},
            "minItems": 2,
            "maxItems": 20,
            "description": "Answers to choose from. Without them any text can be given",
        },
    )
    timeout_secs = 3600.0

    async def execute(self, args: JsonObject, ctx: ToolContext) -> ToolOutput:
        wanted: JsonObject = {"type": "string"}
        if "choices" in args:
            wanted["enum"] = args["choices"]
        schema = {"type": "object", "properties": {"answer": wanted}, "required": ["answer"]}
        given = await ctx.ask(args["question"], schema)
        if given is None:
            return ToolResult.error("the user did not answer; go on with what is known, or say what is missing")
        return ToolResult.success({"answer": given["answer"]}, content=(TextBlock(text=given["answer"]),))
