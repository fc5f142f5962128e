--- The subcommands of `:Sidecar`, and what completes them.
local log = require("sidecar.log")
local state = require("sidecar.state")

local M = {}

---@class sidecar.Command
---@field run fun(rest: string, arguments: vim.api.keyset.create_user_command.command_args)
---@field words? fun(): string[] what may follow

---@return string[]
local function chat_numbers()
  return vim.tbl_map(function(chat)
    return tostring(chat.number)
  end, state.chats)
end

---@param which string a number, "new", or "" for the current chat
local function open_chat(which)
  local Chat = require("sidecar.chat")
  local chat = which == "" and Chat.current() or which == "new" and Chat.new() or state.chats[tonumber(which)]
  if chat and chat.view:is_valid() then
    chat:open({ focus = true })
  else
    log.tell(("there is no chat %q; :Sidecar chat new makes one"):format(which))
  end
end

---@param prompt string
---@param arguments vim.api.keyset.create_user_command.command_args
local function ask(prompt, arguments)
  local range = require("sidecar.context").range(arguments)
  local chat = require("sidecar.chat").current()
  if prompt ~= "" then
    chat:ask(prompt, range)
    return
  end
  vim.ui.input({ prompt = "Ask the agent: " }, function(typed)
    chat:ask(typed or "", range)
  end)
end

---@type table<string, sidecar.Command>
local COMMANDS = {
  ask = { run = ask },
  chat = {
    run = open_chat,
    words = function()
      return vim.list_extend({ "new" }, chat_numbers())
    end,
  },
  stop = {
    run = function()
      require("sidecar.chat").current():stop()
    end,
  },
  approve = {
    run = function(rest)
      local word, reason = rest:match("^(%S+)%s*(.*)$")
      require("sidecar.approval").approve(word, reason)
    end,
    words = function()
      return vim.fn.sort(vim.tbl_keys(require("sidecar.approval").WORDS))
    end,
  },
  tools = {
    run = function()
      require("sidecar.listing").tools()
    end,
  },
  servers = {
    run = function()
      require("sidecar.listing").servers()
    end,
  },
  model = {
    run = function(rest)
      require("sidecar.models").choose(require("sidecar.chat").current(), rest)
    end,
  },
  sessions = {
    run = function()
      require("sidecar.sessions").pick()
    end,
  },
  log = {
    run = function()
      log.open()
    end,
  },
  restart = {
    run = function()
      require("sidecar.client").restart()
    end,
  },
}

---@param arguments vim.api.keyset.create_user_command.command_args
function M.run(arguments)
  local name, rest = arguments.args:match("^(%S*)%s*(.-)%s*$")
  local command = COMMANDS[name == "" and "chat" or name]
  if not command then
    local known = table.concat(vim.fn.sort(vim.tbl_keys(COMMANDS)), ", ")
    log.tell(("there is no :Sidecar %s; there are %s"):format(name, known))
    return
  end
  command.run(rest, arguments)
end

---@param lead string what is to be completed
---@param line string the command line so far
---@return string[]
function M.complete(lead, line)
  local name = line:match("Sidecar%s+(%S+)%s")
  local command = name and COMMANDS[name]
  local words = not name and vim.fn.sort(vim.tbl_keys(COMMANDS)) or command and command.words and command.words() or {}
  return vim.tbl_filter(function(word)
    return vim.startswith(word, lead)
  end, words)
end

return M
