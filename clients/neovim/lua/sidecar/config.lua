--- The settings: their defaults, and what is wrong with those that were given.
local state = require("sidecar.state")

local M = {}

---@class sidecar.Settings
---@field cmd? string[] how the sidecar is started
---@field env? table<string, string> variables for its process, on top of Neovim's own
---@field model? string the model as provider/model; the same as options.model
---@field options? table the options of the protocol: providers, mcpServers, permissions, …
---@field start_limit_secs? number how long the sidecar may take to start
---@field width? number columns of a chat window; below 1 a share of the screen
---@field prompt_height? integer lines of the prompt window
---@field show_reasoning? boolean whether a chat shows what the model thinks

---@type sidecar.Settings
local DEFAULTS = {
  cmd = { "agent-sidecar" },
  env = {},
  options = {},
  start_limit_secs = 30,
  width = 0.45,
  prompt_height = 5,
  show_reasoning = false,
}

local TYPES = {
  cmd = "table",
  env = "table",
  model = "string",
  options = "table",
  start_limit_secs = "number",
  width = "number",
  prompt_height = "number",
  show_reasoning = "boolean",
}

--- Takes the settings; what is left out has its default. Raises an error that names a wrong one.
---@param settings? sidecar.Settings
function M.set(settings)
  for name, value in pairs(settings or {}) do
    local expected = TYPES[name]
    if not expected then
      local known = table.concat(vim.fn.sort(vim.tbl_keys(TYPES)), ", ")
      error(("sidecar.setup: there is no setting %q; there are %s"):format(name, known), 0)
    end
    if type(value) ~= expected then
      error(("sidecar.setup: %s must be a %s, not a %s"):format(name, expected, type(value)), 0)
    end
  end
  state.settings = vim.tbl_extend("force", DEFAULTS, settings or {})
end

---@return sidecar.Settings
function M.get()
  if not state.settings then
    M.set()
  end
  return state.settings
end

--- What the sidecar is told when it starts.
---@return table
function M.initialization_options()
  local settings = M.get()
  local options = vim.deepcopy(settings.options)
  options.model = settings.model or options.model
  return next(options) and options or vim.empty_dict()
end

return M
