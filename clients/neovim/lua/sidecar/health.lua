--- `:checkhealth sidecar`: what is there, what is missing, and what to do about it.
local M = {}

local function check_editor()
  if vim.fn.has("nvim-0.11") == 1 then
    vim.health.ok("Neovim " .. tostring(vim.version()))
  else
    vim.health.error("Neovim is too old", "install Neovim 0.11 or newer")
  end
  if pcall(vim.treesitter.language.inspect, "markdown") then
    vim.health.ok("chats are highlighted by the Markdown parser")
  else
    vim.health.warn("there is no Markdown parser, so chats use plain syntax highlighting")
  end
end

---@return boolean
local function check_program()
  local cmd = require("sidecar.config").get().cmd
  if vim.fn.executable(cmd[1]) == 0 then
    local advice = "install it (pip install agent-sidecar) or name its whole path in setup({ cmd = { … } })"
    vim.health.error(("there is no program %q"):format(cmd[1]), advice)
    return false
  end
  local asked = vim.list_extend(vim.deepcopy(cmd), { "--version" })
  local answered, result = pcall(function()
    return vim.system(asked, { text = true }):wait(10000)
  end)
  if answered and result.code == 0 then
    vim.health.ok(("%s is %s"):format(cmd[1], vim.trim(result.stdout)))
    return true
  end
  local said = vim.trim(answered and result.stderr or require("sidecar.text").of_error(result)):match("[^\n]*$")
  local reason = ("%s does not say its version: %s"):format(table.concat(cmd, " "), said ~= "" and said or "it says nothing")
  vim.health.error(reason, "run it in a terminal to see why, or install agent-sidecar anew")
  return false
end

local function check_process()
  local client = require("sidecar.client").get()
  if not client or not client.initialized then
    vim.health.info("the sidecar is not running; it starts with the first :Sidecar ask")
    return
  end
  local ours = vim.tbl_get(client, "server_capabilities", "experimental", "agentSidecar") or {}
  vim.health.ok(("the sidecar is running and speaks protocol %s"):format(ours.protocolVersion or "of unknown version"))
  if #(ours.models or {}) > 0 then
    vim.health.ok("models: " .. table.concat(ours.models, ", "))
  else
    vim.health.warn("no model is named", 'set one: setup({ model = "ollama/qwen3" }), or a key such as OPENAI_API_KEY')
  end
  local answer = client:request_sync("mcp/list", vim.empty_dict(), 3000)
  for _, server in ipairs(answer and answer.result and answer.result.servers or {}) do
    local line = ("MCP server %s: %s, %d tools"):format(server.name, server.status, server.toolCount)
    if server.status == "ready" then
      vim.health.ok(line)
    else
      vim.health.warn(line, server.error and server.error.message or ":Sidecar servers shows more")
    end
  end
end

function M.check()
  vim.health.start("sidecar")
  check_editor()
  if check_program() then
    check_process()
  end
end

return M
