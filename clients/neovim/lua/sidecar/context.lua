--- What of the editor goes along with a prompt: lines of a range, or the buffers that the prompt names.
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

--- The buffer of the file in the current window, or the last one before it.
---@return integer?
function M.file_in_view()
  for _, buffer in ipairs({ vim.api.nvim_get_current_buf(), vim.fn.bufnr("#") }) do
    if buffer > 0 and vim.api.nvim_buf_is_valid(buffer) and is_file(buffer) then
      return buffer
    end
  end
  return nil
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

--- The blocks that go along with a prompt, and what they are called.
---@param prompt string `#buffer` in it stands for the file beside the chat, `#buffers` for all files that are open
---@param range? sidecar.Range
---@param source? integer the file beside the chat
---@return sidecar.TextBlock[], string[]
function M.blocks(prompt, range, source)
  local blocks, names = {}, {}
  local function add(lines, is_whole)
    blocks[#blocks + 1], names[#names + 1] = block(lines, is_whole)
  end
  if range then
    add(range, false)
  end
  local words = vim.split(prompt, "%s+")
  if vim.tbl_contains(words, "#buffers") then
    for _, buffer in ipairs(vim.tbl_filter(is_file, vim.api.nvim_list_bufs())) do
      if vim.api.nvim_buf_get_name(buffer) ~= "" then
        add(whole(buffer), true)
      end
    end
  elseif vim.tbl_contains(words, "#buffer") and source and vim.api.nvim_buf_is_valid(source) then
    add(whole(source), true)
  end
  return blocks, names
end

return M
