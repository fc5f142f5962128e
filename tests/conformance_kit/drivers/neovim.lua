-- A host for the kit, made of the Neovim plugin: it does what AGENT_SIDECAR_SCENARIO says as a person would.
-- nvim --headless -u NONE --cmd "set rtp^=clients/neovim" -l neovim.lua
-- The contract is in protocol.md, chapter Conformance. What it prints is what stands in the chats' buffers.
local scenario = vim.json.decode(vim.env.AGENT_SIDECAR_SCENARIO, { luanil = { object = true } })

local function print_line(line)
  io.stdout:write(vim.json.encode(line), "\n")
  io.stdout:flush()
end

local KNOWN = { "prompts", "then", "approve", "input", "cancel", "steer", "resume", "startSecs" }
for what in pairs(scenario) do
  if not vim.list_contains(KNOWN, what) then
    print_line({ unsupported = what })
    return
  end
end
if scenario.input and scenario.input.action == "decline" then
  print_line({ unsupported = "declining, which is the same as closing here" })
  return
end

vim.o.columns, vim.o.lines = 120, 40
vim.cmd.runtime("plugin/sidecar.lua")
require("sidecar").setup({
  cmd = vim.json.decode(vim.env.AGENT_SIDECAR_COMMAND),
  start_limit_secs = scenario.startSecs,
})
local state = require("sidecar.state")
local approval = require("sidecar.approval")

vim.notify = function() end

-- What a person does when asked -------------------------------------------------------------------------------

local WORDS = { allowOnce = "once", allowSession = "session", allowAlways = "always", deny = "deny", denyAndStop = "stop" }

local function answer_question()
  local question = state.questions[1]
  if not question and state.inputs[1] and (scenario.input or {}).action ~= "wait" then
    approval.approve()
  end
  if not question or scenario.approve == "wait" then
    return
  end
  approval.approve(WORDS[scenario.approve or "deny"])
  if state.questions[1] == question then -- It was not on offer.
    approval.approve("deny")
  end
end

local function entered(label)
  local input = scenario.input or { action = "cancel" }
  if input.action ~= "accept" then
    return nil
  end
  return type(input.content) == "table" and input.content[label] or input.content
end

vim.ui.input = function(options, confirm)
  local value = entered((options.prompt:gsub(": $", "")))
  confirm(value ~= nil and tostring(value) or nil)
end

vim.ui.select = function(items, options, choose)
  local wanted = entered(options.prompt)
  if options.prompt == "Visit this page?" then
    choose(items[2], 2)
  elseif type(wanted) == "boolean" then
    choose(items[wanted and 1 or 2], wanted and 1 or 2)
  else
    choose(nil)
  end
end

-- What stands in a chat ---------------------------------------------------------------------------------------

-- The agent's words and the last note after a line of the chat.
local function shown(chat, first_line)
  chat.view:flush()
  local words, note, is_agent, is_call = {}, nil, false, false
  for _, line in ipairs(vim.api.nvim_buf_get_lines(chat.view.buffer, first_line, -1, true)) do
    if vim.startswith(line, "## ") then
      is_agent = line == "## Agent"
    elseif vim.startswith(line, "> ") then
      note, is_agent = line:sub(3), false
    elseif vim.startswith(line, "▸ ") then
      is_agent, is_call = true, true
    elseif is_call and vim.startswith(line, "    ") then -- What went into a call and came out.
    elseif is_agent then
      is_call = false
      table.insert(words, line)
    end
  end
  return (table.concat(words, "\n"):gsub("^\n+", ""):gsub("\n+$", "")), note or ""
end

local function line_of(number, chat, first_line)
  local said, note = shown(chat, first_line)
  local line = { run = number, text = said }
  if vim.startswith(note, "failed: ") then
    local message, kind = note:match("^failed: (.*) %((%w+)%)$")
    line.ended, line.error = "error", { message = message or note:sub(9), kind = kind }
  elseif note:match("tokens in") or note == "done" then
    line.ended = "stop"
  elseif note == "stopped" then
    line.ended = "cancelled"
  else
    line.ended = note:match("^cut off") and "length" or note
  end
  return line
end

-- Runs --------------------------------------------------------------------------------------------------------

local has_acted = false

local function act(chat)
  if has_acted or not (scenario.cancel or scenario.steer) or shown(chat, 0) == "" then
    return
  end
  has_acted = true
  if scenario.cancel then
    vim.cmd("Sidecar stop")
  else
    vim.cmd("Sidecar ask " .. scenario.steer)
  end
end

local function ask(chat, prompt)
  local first_line = vim.api.nvim_buf_line_count(chat.view.buffer)
  chat:ask(prompt)
  return first_line
end

local function wait_for_end(chats)
  vim.wait(60000, function()
    answer_question()
    act(chats[1])
    return vim.iter(chats):all(function(chat)
      return chat.run == nil
    end)
  end, 5)
end

local Chat = require("sidecar.chat")
local chats, first_lines = {}, {}
for position, prompt in ipairs(scenario.prompts) do
  chats[position] = Chat.new()
  first_lines[position] = ask(chats[position], prompt)
end
wait_for_end(chats)
for position, chat in ipairs(chats) do
  print_line(line_of(position - 1, chat, first_lines[position]))
end
for position, prompt in ipairs(scenario["then"] or {}) do
  local first_line = ask(chats[1], prompt)
  wait_for_end(chats)
  print_line(line_of(#chats + position - 1, chats[1], first_line))
end
vim.cmd("qall!")
