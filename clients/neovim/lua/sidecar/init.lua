--- What a configuration or a mapping calls. All of it is also a `:Sidecar` subcommand.
local M = {}

--- Takes the settings. Starts nothing; may be called again, and need not be called at all.
---@param settings? sidecar.Settings
function M.setup(settings)
  require("sidecar.config").set(settings)
end

--- Asks in the current chat, which is opened if there is none.
---@param prompt string
function M.ask(prompt)
  require("sidecar.chat").current():ask(prompt)
end

--- Shows the current chat and puts the cursor into its prompt.
function M.chat()
  require("sidecar.chat").current():open({ focus = true })
end

--- Ends the run of the current chat.
function M.stop()
  require("sidecar.chat").current():stop()
end

return M
