--- Buffers of the plugin's own: of no file, writable by it whatever the person's own options say, in windows made for prose.
local M = {}

--- A buffer that a session file has left under this name is taken over, so that its windows come to life again.
---@param name string
---@return integer
local function named(name)
  local left = vim.fn.bufnr("^" .. name .. "$")
  if left == -1 then
    local buffer = vim.api.nvim_create_buf(false, true)
    vim.api.nvim_buf_set_name(buffer, name)
    return buffer
  end
  vim.bo[left].buftype = "nofile"
  vim.bo[left].swapfile = false
  vim.bo[left].buflisted = false
  vim.fn.bufload(left)
  return left
end

--- An empty buffer. With a name it stays while it is in no window, without one it ends with its window.
---@param filetype string
---@param name? string
---@return integer buffer
function M.new(filetype, name)
  local buffer = name and named(name) or vim.api.nvim_create_buf(false, true)
  vim.bo[buffer].bufhidden = name and "hide" or "wipe"
  vim.bo[buffer].modifiable = true
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, {})
  vim.bo[buffer].filetype = filetype
  return buffer
end

--- Makes a window fit for prose: without the columns that belong to code.
---@param window integer
function M.look(window)
  local options = vim.wo[window][0]
  options.wrap = true
  options.linebreak = true
  options.number = false
  options.relativenumber = false
  options.signcolumn = "no"
  options.colorcolumn = ""
end

return M
