--- Which model answers in a chat: named, or picked from what the providers have.
local client = require("sidecar.client")
local log = require("sidecar.log")
local text = require("sidecar.text")

local M = {}

--- Own choice: as many as a person looks through.
local LIMIT = 1000

---@param model sidecar.ModelInfo
---@return string
local function label(model)
  local size = model.contextTokens and (" (%d tokens)"):format(model.contextTokens) or ""
  return text.escape(model.model) .. size
end

---@param chat sidecar.Chat
local function pick(chat)
  client.request("models/list", { limit = LIMIT }, function(err, result)
    if err then
      log.tell(err.message)
    elseif #result.models == 0 then
      log.tell("no provider lists its models; name one: :Sidecar model {provider}/{model}")
    else
      vim.ui.select(result.models, { prompt = "Answers from now on", kind = "sidecar_model", format_item = label }, function(model)
        if model then
          chat:answer_by(model.model)
        end
      end)
    end
  end)
end

--- Changes the model of a chat, from its next run on.
---@param chat sidecar.Chat
---@param name string `provider/model`; "" to pick one
function M.choose(chat, name)
  if name == "" then
    pick(chat)
  else
    chat:answer_by(name)
  end
end

return M
