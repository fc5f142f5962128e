--- Lists in a window of their own: tools, servers, the log.
local client = require("sidecar.client")
local log = require("sidecar.log")
local scratch = require("sidecar.scratch")
local text = require("sidecar.text")

local M = {}

--- Shows lines below everything else; `q` closes them. Shown again, they take the place of those before.
---@param name string
---@param lines string[]
---@return integer buffer
function M.open(name, lines)
  local path = "sidecar://" .. name
  local buffer = vim.fn.bufnr("^" .. path .. "$")
  if buffer == -1 then
    buffer = scratch.new("sidecar-list", path)
    vim.keymap.set("n", "q", "<Cmd>close<CR>", { buffer = buffer, nowait = true, desc = "Close" })
  end
  vim.bo[buffer].modifiable = true
  vim.api.nvim_buf_set_lines(buffer, 0, -1, true, lines)
  vim.bo[buffer].modifiable = false
  if vim.fn.bufwinid(buffer) == -1 then
    local height = math.max(3, math.min(#lines + 1, 15))
    local window = vim.api.nvim_open_win(buffer, true, { split = "below", win = -1, height = height })
    scratch.look(window)
    local options = vim.wo[window][0]
    options.breakindent, options.breakindentopt = true, "shift:4"
    options.winfixheight = true
  end
  return buffer
end

---@param tool sidecar.ToolInfo
---@return string
local function tool_line(tool)
  local from = tool.source.server and ("%s %s"):format(tool.source.type, tool.source.server) or tool.source.type
  local needs = #tool.requiredPermissions > 0 and " needs " .. table.concat(tool.requiredPermissions, ", ") or ""
  local words = tool.description:match("[^\n]*") or ""
  return text.escape(("%s (%s)%s: %s"):format(tool.name, from, needs, words))
end

--- All tools that there are.
function M.tools()
  local lines = {}
  local function page(cursor)
    client.request("tools/list", { cursor = cursor, limit = 200 }, function(err, result)
      if err then
        log.tell(err.message)
        return
      end
      vim.list_extend(lines, vim.tbl_map(tool_line, result.tools))
      if result.nextCursor then
        page(result.nextCursor)
      else
        M.open("tools", #lines > 0 and lines or { "There are no tools." })
      end
    end)
  end
  page()
end

---@param servers sidecar.ServerInfo[]
---@return string[]
local function server_lines(servers)
  local lines = { "R restarts the server under the cursor", "" }
  for _, server in ipairs(servers) do
    lines[#lines + 1] = text.escape(("%s: %s, %d tools"):format(server.name, server.status, server.toolCount))
    if server.error then
      lines[#lines + 1] = "    " .. text.escape(server.error.message)
      for _, line in ipairs(server.error.stderrTail and text.lines(server.error.stderrTail) or {}) do
        lines[#lines + 1] = "    | " .. line
      end
    end
  end
  return #servers > 0 and lines or { "No MCP servers are configured; name them in options.mcpServers." }
end

---@param servers sidecar.ServerInfo[]
local function restart_under_cursor(servers)
  local row = vim.api.nvim_win_get_cursor(0)[1]
  local above = vim.api.nvim_buf_get_lines(0, 0, row, true)
  for position = #above, 1, -1 do
    for _, server in ipairs(servers) do
      if vim.startswith(above[position], text.escape(server.name) .. ": ") then
        client.request("mcp/restart", { name = server.name }, M.servers)
        return
      end
    end
  end
end

--- The MCP servers and how they are.
function M.servers()
  client.request("mcp/list", nil, function(err, result)
    if err then
      log.tell(err.message)
      return
    end
    local buffer = M.open("servers", server_lines(result.servers))
    vim.keymap.set("n", "R", function()
      restart_under_cursor(result.servers)
    end, { buffer = buffer, nowait = true, desc = "Restart the server" })
  end)
end

return M
