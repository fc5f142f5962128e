--- What happened, for `:Sidecar log`, and messages to the person. Holds no bodies of messages.
local state = require("sidecar.state")

local M = {}

--- Own choice: enough to see what led to a failure.
local MAX_LINES = 1000

---@param line string
function M.add(line)
  local stamp = os.date("%H:%M:%S ")
  for _, part in ipairs(vim.split(line, "\n")) do
    state.log[#state.log + 1] = stamp .. require("sidecar.text").escape(part)
  end
  while #state.log > MAX_LINES do
    table.remove(state.log, 1)
  end
end

--- Tells the person, and keeps it.
---@param message string says what to do next
---@param level? integer one of vim.log.levels; an error if absent
function M.tell(message, level)
  M.add(message)
  vim.notify("sidecar: " .. require("sidecar.text").escape(message), level or vim.log.levels.ERROR)
end

--- Shows the log in a window.
function M.open()
  local lines = { "What the sidecar's process writes to stderr is in " .. vim.lsp.log.get_filename(), "" }
  require("sidecar.listing").open("log", vim.list_extend(lines, state.log))
end

return M
