--- Everything that changes while the plugin runs, in this one table.
---@class sidecar.State
---@field settings? sidecar.Settings
---@field client_id? integer the sidecar's process; nil while there is none
---@field is_stopping boolean whether its end is wanted
---@field waiting fun(failure?: string)[] who waits for the handshake
---@field crashes_ms number[] when the process ended by itself
---@field chats sidecar.Chat[] in the order in which they were made
---@field chat? sidecar.Chat the one that was used last
---@field runs table<string, sidecar.Chat> whose run it is, by run id
---@field questions sidecar.Question[] approvals without an answer, the oldest first
---@field inputs sidecar.Input[] what tools and servers want to know, the oldest first
---@field last_words string the last line that the sidecar's process wrote to stderr
---@field log string[]
local state = {
  is_stopping = false,
  waiting = {},
  crashes_ms = {},
  chats = {},
  runs = {},
  questions = {},
  inputs = {},
  last_words = "",
  log = {},
}

return state
