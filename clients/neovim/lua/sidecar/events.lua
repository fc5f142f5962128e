--- What each event of a run does to the chat that the run belongs to.
local log = require("sidecar.log")
local state = require("sidecar.state")
local text = require("sidecar.text")

local M = {}

--- A call of a tool as a chat shows it.
---@class sidecar.Call
---@field name string
---@field arguments string in short
---@field block sidecar.Block
---@field state string what it does now
---@field is_over boolean
---@field request_id? string of the question whether it may run

local SUMMARY_WIDTH = 60
--- Own choice: what a fold holds of a result; the model is shown up to `cycle.maxToolResultBytes`.
local MAX_OUTPUT_LINES = 200

---@param chat sidecar.Chat
---@param call sidecar.Call
---@param now string
---@param group? string
local function set_state(chat, call, now, group)
  call.state = now
  -- The state stands before the arguments, so that a narrow window does not cut it off.
  chat.view:set_headline(call.block, ("▸ %s · %s · %s"):format(call.name, now, call.arguments), group)
end

--- Starts to show a call.
---@param chat sidecar.Chat
---@param id string
---@param name string
---@param input table<string, any>
function M.show_call(chat, id, name, input)
  local call = { name = text.escape(name), arguments = text.summary(input, SUMMARY_WIDTH), is_over = false }
  call.block = chat.view:add_block("▸ " .. call.name, text.arguments(input))
  chat.calls[id] = call
  set_state(chat, call, "waiting", "SidecarTool")
end

--- Shows how a call ended.
---@param chat sidecar.Chat
---@param id string
---@param output sidecar.Content
---@param is_error boolean
---@param how string
function M.show_result(chat, id, output, is_error, how)
  local call = chat.calls[id]
  if not call then
    return
  end
  local lines = text.lines(text.of_content(output))
  if #lines > MAX_OUTPUT_LINES then
    local left_out = ("… %d more lines"):format(#lines - MAX_OUTPUT_LINES)
    lines = vim.list_extend(vim.list_slice(lines, 1, MAX_OUTPUT_LINES), { left_out })
  end
  call.is_over = true
  chat.view:extend_block(call.block, vim.list_extend({ is_error and "── error" or "── result" }, lines))
  set_state(chat, call, how, is_error and "SidecarToolFailed" or "SidecarToolDone")
end

---@type table<string, fun(chat: sidecar.Chat, event: table, params: sidecar.AgentEventParams)>
local shows = {}

function shows.runStarted() end

---@param event sidecar.AssistantTextDelta
function shows.assistantTextDelta(chat, event)
  chat:set_status("answering")
  chat:speak("assistant")
  chat.view:append(event.text)
end

---@param event sidecar.AssistantReasoningDelta
function shows.assistantReasoningDelta(chat, event)
  chat:set_status("thinking")
  if require("sidecar.config").get().show_reasoning then
    chat:speak("reasoning")
    chat.view:append(event.text)
  end
end

---@param event sidecar.ToolExecutionStarted
function shows.toolExecutionStarted(chat, event)
  chat:speak(nil)
  M.show_call(chat, event.callId, event.toolName, event.input)
end

---@param event sidecar.TurnComplete
function shows.turnComplete(chat, event)
  chat:speak(nil)
  if event.reason ~= "toolCalls" then
    return
  end
  chat:set_status("running tools")
  for _, call in pairs(chat.calls) do
    if call.state == "waiting" then
      set_state(chat, call, "running")
    end
  end
end

---@param event sidecar.ToolExecutionProgress
function shows.toolExecutionProgress(chat, event)
  local call = chat.calls[event.callId]
  if not call then
    return
  end
  local now = "running"
  if event.done then
    now = now .. (", %g"):format(event.done) .. (event.total and (" of %g"):format(event.total) or "")
  end
  if event.message then
    now = now .. ", " .. text.escape(event.message)
  end
  set_state(chat, call, now)
end

---@param event sidecar.ApprovalRequested
function shows.approvalRequested(chat, event)
  local call = chat.calls[event.callId]
  if call then
    call.request_id = event.requestId
    set_state(chat, call, "asking you", "SidecarToolAsking")
    chat:set_status("asking you, <C-g> answers")
  end
end

---@param event sidecar.ApprovalResolved
function shows.approvalResolved(chat, event)
  require("sidecar.approval").withdraw(event.requestId)
  for _, call in pairs(chat.calls) do
    if call.request_id == event.requestId then
      set_state(chat, call, "running", "SidecarTool")
    end
  end
  chat:set_status("running tools")
end

---@param event sidecar.ToolExecutionCompleted
function shows.toolExecutionCompleted(chat, event)
  local took = text.duration(event.durationMs)
  local kind = event.errorKind and (" (%s)"):format(event.errorKind) or ""
  local how = event.isError and ("failed after %s%s"):format(took, kind) or ("done in %s"):format(took)
  M.show_result(chat, event.callId, event.output, event.isError, how)
  local is_any_left = vim.iter(pairs(chat.calls)):any(function(_, call)
    return not call.is_over
  end)
  require("sidecar.client").reload_files()
  chat:set_status(is_any_left and "running tools" or "waiting for the model")
end

---@param event sidecar.Retrying
function shows.retrying(chat, event)
  chat:set_status("waiting to try again")
  chat:note(("%s; trying again in %s"):format(event.reason, text.duration(event.delayMs)))
end

---@param event sidecar.Compacted
function shows.compacted(chat, event)
  local sizes = ("%d instead of %d tokens"):format(event.afterTokens, event.beforeTokens)
  chat:note("the conversation was made smaller: " .. sizes)
end

---@param event sidecar.Warned
function shows.warning(chat, event)
  chat:note("warning: " .. event.message)
end

---@param event sidecar.RunCompleted
function shows.runCompleted(chat, event, params)
  require("sidecar.approval").withdraw_run(params.runId)
  chat:run_ended(event.stopReason, event.error, event.usage)
end

--- Shows an event, unless it was shown before.
---@param params sidecar.AgentEventParams
function M.receive(params)
  local chat = state.runs[params.runId]
  local run = chat and chat.run
  if not chat or not run or run.id ~= params.runId or params.seq <= run.last_seq then
    return
  end
  run.last_seq = params.seq
  chat.session_id = params.sessionId
  local show = shows[params.event.type]
  if show then
    show(chat, params.event, params)
  else
    log.add("an event that this plugin does not know: " .. params.event.type)
  end
end

return M
