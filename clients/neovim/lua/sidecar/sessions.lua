--- Conversations that were kept: pick one and go on with it.
local client = require("sidecar.client")
local log = require("sidecar.log")
local text = require("sidecar.text")

local M = {}

--- Own choice: as many as a person looks through.
local LIMIT = 200

---@param session sidecar.SessionSummary
---@return string
local function label(session)
  local when = os.date("%Y-%m-%d %H:%M", math.floor(session.updatedMs / 1000))
  local title = text.escape(session.title or session.sessionId)
  return ("%s  %s (%d messages)"):format(when, title, session.messageCount)
end

--- Shows what was said and done in a session.
---@param chat sidecar.Chat a new one
---@param session sidecar.SessionGetResult
local function show(chat, session)
  local events = require("sidecar.events")
  chat.session_id = session.sessionId
  for _, message in ipairs(session.messages) do
    local said = text.of_content(message.content)
    if message.role == "tool" then
      local how = message.isError and "failed" or "done"
      events.show_result(chat, message.callId, message.content, message.isError == true, how)
    elseif said ~= "" then
      chat:add_said(message.role, vim.split(said, "\n"))
    end
    for _, call in ipairs(message.toolCalls or {}) do
      events.show_call(chat, call.callId, call.toolName, call.input)
    end
  end
  chat.view:flush()
end

--- Goes on with a session, in the chat that has it or in a new one.
---@param session_id string
function M.resume(session_id)
  local Chat = require("sidecar.chat")
  local chat = Chat.of_session(session_id)
  if chat then
    chat:open({ focus = true })
    return
  end
  client.request("session/get", { sessionId = session_id }, function(err, session)
    if err then
      log.tell(err.message)
      return
    end
    chat = Chat.new()
    show(chat, session)
    chat:open({ focus = true })
  end)
end

--- Lets the person pick a session, the last touched first.
function M.pick()
  client.request("session/list", { limit = LIMIT }, function(err, result)
    if err then
      log.tell(err.message)
    elseif #result.sessions == 0 then
      log.tell("no conversation is kept yet; :Sidecar ask begins one", vim.log.levels.INFO)
    else
      local options = { prompt = "Go on with", kind = "sidecar_session", format_item = label }
      vim.ui.select(result.sessions, options, function(session)
        if session then
          M.resume(session.sessionId)
        end
      end)
    end
  end)
end

return M
