--- A conversation: its session, its run and its two windows. There can be several at once.
local client = require("sidecar.client")
local log = require("sidecar.log")
local state = require("sidecar.state")
local text = require("sidecar.text")

---@class sidecar.Run
---@field id string
---@field last_seq integer the number of the last event that was shown; -1: none yet
---@field client_id? integer the process that it was sent to; nil while that is not there yet

---@class sidecar.Chat
---@field number integer
---@field view sidecar.View
---@field prompt_buffer integer where the person writes
---@field model? string who answers, as `provider/model`; nil: as the settings say
---@field session_id? string nil until the first run has begun
---@field run? sidecar.Run the one that goes on
---@field calls table<string, sidecar.Call> by call id
---@field unsaid table[] what the run did not take, to be said after it: prompt and content
---@field status? string what the run is at, as a person says it
---@field private speaker? "assistant"|"reasoning" whose words stream in at the end
---@field private last_speaker? string whose heading is the last one
local Chat = {}
Chat.__index = Chat

--- Own choice: a sidecar that has not ended a run in this time after it was asked to is ended itself.
local STOP_LIMIT_MS = 5000

--- What a chat says of a run that ended otherwise than well.
local ENDS = {
  cancelled = "stopped",
  length = "cut off: the answer reached its limit",
  contentFilter = "cut off: the model's provider withholds the rest",
}

--- By the role of a message; what the model thinks has its own.
local HEADINGS = { assistant = "## Agent", reasoning = "## Thinking", user = "## You", system = "## System" }

--- The chats ------------------------------------------------------------------------------------------------

---@return sidecar.Chat
function Chat.new()
  require("sidecar.highlights").define()
  local number = #state.chats + 1
  local chat = setmetatable({ number = number, calls = {}, unsaid = {} }, Chat)
  chat.view = require("sidecar.view").new(("sidecar://chat/%d"):format(number))
  require("sidecar.prompt").add(chat)
  require("sidecar.layout").watch(chat)
  state.chats[number] = chat
  state.chat = chat
  return chat
end

--- The chat that was used last; a new one if there is none whose buffer is still there.
---@return sidecar.Chat
function Chat.current()
  local chat = state.chat
  if chat and chat.view:is_valid() then
    return chat
  end
  return Chat.new()
end

--- The chat with this session, if it is open here.
---@param session_id string
---@return sidecar.Chat?
function Chat.of_session(session_id)
  return vim.iter(state.chats):find(function(chat)
    return chat.session_id == session_id and chat.view:is_valid()
  end)
end

--- After the sidecar was started again: each chat is shown what it has missed of its run.
---@param failure? string
function Chat.catch_up_all(failure)
  if failure then
    log.tell(failure)
    Chat.abandon_all(failure)
    return
  end
  for _, chat in ipairs(state.chats) do
    chat:catch_up()
  end
end

--- The sidecar is gone for good: no run goes on.
---@param reason string
function Chat.abandon_all(reason)
  for _, chat in ipairs(state.chats) do
    if chat.run then
      chat:run_ended("error", { message = reason })
    end
  end
end

--- Shows the chat in this tab page. With `focus`, the cursor goes into its prompt.
---@param how? { focus?: boolean }
function Chat:open(how)
  state.chat = self
  local prompt_window = require("sidecar.layout").open(self)
  if how and how.focus then
    vim.api.nvim_set_current_win(prompt_window)
  end
end

--- Asking ---------------------------------------------------------------------------------------------------

--- Says something: starts a run, or joins the one that goes on.
---@param prompt string
---@param range? sidecar.Range lines that go with it
function Chat:ask(prompt, range)
  if vim.trim(prompt) == "" then
    return
  end
  if not self:is_on_show() then
    self:open()
  end
  self:speak(nil)
  local blocks, names = require("sidecar.context").blocks(prompt, range)
  local lines = vim.split(prompt, "\n")
  vim.list_extend(lines, vim.tbl_map(function(name)
    return "+ " .. name
  end, names))
  self:add_said("user", lines)
  local content = #blocks == 0 and prompt or vim.list_extend({ { type = "text", text = prompt } }, blocks)
  self:say(prompt, content)
end

---@private
---@param prompt string
---@param content sidecar.Content
function Chat:say(prompt, content)
  if self.run then
    self:steer(prompt, content)
  else
    self:submit(prompt, content)
  end
end

---@private
---@param prompt string
---@param content sidecar.Content
function Chat:submit(prompt, content)
  local id = "nvim-" .. vim.fn.sha256(("%d %d %s"):format(vim.fn.getpid(), vim.uv.hrtime(), prompt)):sub(1, 24)
  local run = { id = id, last_seq = -1 }
  self.run = run
  state.runs[id] = self
  -- Answered at once: how the run ends is told by its events, also after the sidecar was started again.
  local params = { prompt = content, sessionId = self.session_id, runId = id, wait = false, workDoneToken = id, model = self.model }
  self:set_status("starting the sidecar")
  client.start(function(failure)
    if self.run ~= run then
      return -- Stopped before there was a sidecar.
    end
    run.client_id = state.client_id
    if failure then
      self:run_ended("error", { message = failure })
      return
    end
    self:set_status("waiting for the model")
    client.request("agent/submit", params, function(err, result)
      if not err then
        self.session_id = result.sessionId
      elseif self.run == run then
        self:run_ended("error", err)
      end
    end)
  end)
end

---@private
---@param prompt string
---@param content sidecar.Content
function Chat:steer(prompt, content)
  client.request("agent/steer", { runId = self.run.id, prompt = content }, function(err, result)
    if not err and result.accepted then
      return
    end
    -- The run had just ended, has not begun, or is in its last turn.
    if self.run then
      table.insert(self.unsaid, { prompt, content })
    else
      self:submit(prompt, content)
    end
  end)
end

--- Lets another model answer, from the next run on.
---@param model string `provider/model`
function Chat:answer_by(model)
  self.model = model
  require("sidecar.prompt").show_status(self)
end

--- Ends the run that goes on. If the sidecar does not, its process is ended.
function Chat:stop()
  local run = self.run
  self.unsaid = {}
  if not run then
    log.tell("nothing is running in this chat", vim.log.levels.INFO)
    return
  end
  if not run.client_id then
    self:run_ended("cancelled")
    return
  end
  client.request("agent/cancel", { runId = run.id }, function(err, result)
    if self.run == run and (err or not result.cancelled) and run.last_seq < 0 then
      self:run_ended("cancelled")
    end
  end)
  vim.defer_fn(function()
    if self.run == run then
      log.tell("the run did not end; the sidecar is being ended instead", vim.log.levels.WARN)
      client.stop(true)
    end
  end, STOP_LIMIT_MS)
end

--- Asks for the events of the run since the last that was shown.
function Chat:catch_up()
  local run = self.run
  if not run or run.client_id == nil or run.client_id == state.client_id then
    return
  end
  if not self.session_id then
    self:run_ended("error", { message = "the sidecar ended before the run began; ask again" })
    return
  end
  local params = { sessionId = self.session_id, runId = run.id, afterSeq = run.last_seq >= 0 and run.last_seq or nil }
  client.request("session/events", params, function(err, result)
    for _, missed in ipairs(result and result.events or {}) do
      require("sidecar.events").receive(missed)
    end
    if self.run ~= run then
      return
    end
    if err and err.data and err.data.kind == "sessionNotFound" then
      self.session_id = nil
    end
    self:run_ended("error", err or { message = "the sidecar ended before the run began; ask again" })
  end)
end

--- The chat's buffer is gone: so is its run, and its prompt.
function Chat:close()
  if self.run then
    client.request("agent/cancel", { runId = self.run.id }, function() end)
    state.runs[self.run.id] = nil
    self.run = nil
  end
  if vim.api.nvim_buf_is_valid(self.prompt_buffer) then
    vim.api.nvim_buf_delete(self.prompt_buffer, { force = true })
  end
end

--- Showing --------------------------------------------------------------------------------------------------

--- Begins a part of the answer where another speaks than before; nil: nobody does.
---@param speaker? "assistant"|"reasoning"
function Chat:speak(speaker)
  if self.speaker == speaker then
    return
  end
  self.speaker = speaker
  if speaker then
    self:add_said(speaker, { "" })
  else
    self.view:flush()
  end
end

--- Adds what somebody says, below a heading. An agent who goes on has no second one.
---@param who "assistant"|"reasoning"|"user"|"system"
---@param lines string[]
function Chat:add_said(who, lines)
  local goes_on = who == self.last_speaker and who ~= "user"
  self.view:add(goes_on and lines or vim.list_extend({ HEADINGS[who], "" }, lines))
  self.last_speaker = who
end

--- Says above the prompt what the run is at; nil: nothing runs.
---@param status? string
function Chat:set_status(status)
  if self.status ~= status then
    self.status = status
    require("sidecar.prompt").show_status(self)
  end
end

--- A line beside the conversation.
---@param line string
function Chat:note(line)
  self:speak(nil)
  self.view:add({ "> " .. text.escape(line) }, "SidecarNote")
end

--- The run is over.
---@param reason sidecar.StopReason
---@param err? { message: string, data?: { kind?: string } }
---@param usage? sidecar.Usage
function Chat:run_ended(reason, err, usage)
  state.runs[self.run.id] = nil
  self.run = nil
  self:set_status(nil)
  if reason == "error" then
    self:failed(err or { message = "no reason was given; see :Sidecar log" })
  elseif reason ~= "stop" then
    self:note(ENDS[reason] or reason)
  else
    self:answered(usage)
  end
  local unsaid = self.unsaid
  self.unsaid = {}
  for _, words in ipairs(unsaid) do
    self:say(words[1], words[2])
  end
end

--- Whether the chat is on show in this tab page.
---@return boolean
function Chat:is_on_show()
  return vim.fn.bufwinid(self.view.buffer) ~= -1
end

--- Notes what the run has used. Who does not see the chat is told.
---@private
---@param usage? sidecar.Usage
function Chat:answered(usage)
  if usage and usage.inputTokens + usage.outputTokens > 0 then
    self:note(("%d tokens in, %d out"):format(usage.inputTokens, usage.outputTokens))
  else
    self:note("done")
  end
  if not self:is_on_show() then
    log.tell(("there is an answer; :Sidecar chat %d shows it"):format(self.number), vim.log.levels.INFO)
  end
end

--- Notes why the run failed. Who does not see the chat is told.
---@private
---@param err { message: string, data?: { kind?: string } }
function Chat:failed(err)
  local kind = err.data and err.data.kind
  self:note("failed: " .. err.message .. (kind and (" (%s)"):format(kind) or ""))
  if self:is_on_show() then
    log.add(err.message)
  else
    log.tell(err.message)
  end
end

return Chat
