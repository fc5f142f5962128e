--- What of the editor goes along with a prompt: lines of a range, or the buffers that the prompt names.
local log = require("sidecar.log")

local M = {}

---@class sidecar.Range
---@field buffer integer
---@field first integer line, from 1
---@field last integer
---@field lines string[]

--- The range of a command; of a visual selection, exactly what was selected.
---@param arguments vim.api.keyset.create_user_command.command_args
---@return sidecar.Range?
function M.range(arguments)
  if arguments.range == 0 then
    return nil
  end
  local first, last = arguments.line1, arguments.line2
  local from, to = vim.fn.getpos("'<"), vim.fn.getpos("'>")
  local is_selection = arguments.range == 2 and from[2] == first and to[2] == last
  local lines = is_selection and vim.fn.getregion(from, to, { type = vim.fn.visualmode() })
    or vim.api.nvim_buf_get_lines(0, first - 1, last, true)
  return { buffer = vim.api.nvim_get_current_buf(), first = first, last = last, lines = lines }
end

---@param buffer integer
local function is_file(buffer)
  return vim.api.nvim_buf_is_loaded(buffer) and vim.bo[buffer].buftype == "" and vim.bo[buffer].buflisted
end

--- The file beside the chat: in the current window, the one before it, or any other of this tab page.
---@return integer? buffer
local function file_in_view()
  local windows = { vim.api.nvim_get_current_win(), vim.fn.win_getid(vim.fn.winnr("#")) }
  vim.list_extend(windows, vim.api.nvim_tabpage_list_wins(0))
  for _, window in ipairs(windows) do
    if window ~= 0 and is_file(vim.api.nvim_win_get_buf(window)) then
      return vim.api.nvim_win_get_buf(window)
    end
  end
end

--- Lines of a buffer as a block of text, in a fence that nothing inside can close.
---@param range sidecar.Range
---@param is_whole boolean
---@return sidecar.TextBlock, string name
local function block(range, is_whole)
  local path = vim.fn.fnamemodify(vim.api.nvim_buf_get_name(range.buffer), ":.")
  local name = path ~= "" and path or "a buffer without a name"
  local where = is_whole and name or ("%s, lines %d to %d"):format(name, range.first, range.last)
  local body = table.concat(range.lines, "\n")
  local fence = "```"
  while body:find(fence, 1, true) do
    fence = fence .. "`"
  end
  local head = ("%s, as it stands in the editor:\n%s%s"):format(where, fence, vim.bo[range.buffer].filetype)
  local said = table.concat({ head, body, fence }, "\n")
  return { type = "text", text = said }, where
end

---@param buffer integer
---@return sidecar.Range
local function whole(buffer)
  local lines = vim.api.nvim_buf_get_lines(buffer, 0, -1, true)
  return { buffer = buffer, first = 1, last = #lines, lines = lines }
end

--- Whether a word of the prompt is this one, whatever marks are around it.
---@param prompt string
---@param word string
---@return boolean
local function has_word(prompt, word)
  return (" " .. prompt):find("[^%w_./]" .. word .. "%f[^%w_]") ~= nil
end

--- The blocks that go along with a prompt, and what they are called.
---@param prompt string `#buffer` in it stands for the file beside the chat, `#buffers` for all files that are open
---@param range? sidecar.Range
---@return sidecar.TextBlock[], string[]
function M.blocks(prompt, range)
  local blocks, names = {}, {}
  local function add(lines, is_whole)
    blocks[#blocks + 1], names[#names + 1] = block(lines, is_whole)
  end
  if range then
    add(range, false)
  end
  if has_word(prompt, "#buffers") then
    for _, buffer in ipairs(vim.tbl_filter(is_file, vim.api.nvim_list_bufs())) do
      if vim.api.nvim_buf_get_name(buffer) ~= "" then
        add(whole(buffer), true)
      end
    end
  elseif has_word(prompt, "#buffer") then
    local source = file_in_view()
    if source then
      add(whole(source), true)
    else
      log.tell("no file is beside the chat, so #buffer takes nothing along", vim.log.levels.WARN)
    end
  end
  return blocks, names
end

return M
