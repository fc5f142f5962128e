--- The transcript of a chat as a buffer: text that streams in, and calls of tools as folds. Knows no protocol.
local scratch = require("sidecar.scratch")

--- A call of a tool: its headline and, below it, lines that fold away.
---@class sidecar.Block
---@field mark integer the extmark on the headline
---@field size integer lines below the headline, without the empty one at the end
---@field headline? string what the headline is to become at the next write
---@field group? string its highlight

---@class sidecar.View
---@field buffer integer
---@field private pending string text that is not written yet
---@field private blocks sidecar.Block[]
---@field private changed table<sidecar.Block, true> headlines that are not written yet
---@field private timer uv.uv_timer_t
local View = {}
View.__index = View

--- How long text is gathered before it is written: 25 writes a second read as a stream and leave time for keys.
local WRITE_EVERY_MS = 40

local MARKS = vim.api.nvim_create_namespace("sidecar.view")

---@param buffer integer
local function set_buffer_options(buffer)
  local options = vim.bo[buffer]
  options.modifiable = false
  options.undolevels = -1
  if not pcall(vim.treesitter.start, buffer, "markdown") then
    options.syntax = "markdown"
  end
end

---@param window integer
local function set_window_options(window)
  scratch.look(window)
  local options = vim.wo[window][0]
  options.breakindent = true
  options.list = false
  options.spell = false
  options.conceallevel = 0 -- What tools are given is shown as it is.
  options.fillchars = "eob: ,fold: "
  options.foldmethod = "manual" -- Others are not updated while the person is in insert mode.
  options.foldtext = ""
  options.foldenable = true
end

---@param name string the buffer's name
---@return sidecar.View
function View.new(name)
  local buffer = scratch.new("sidecar", name)
  set_buffer_options(buffer)
  local view = setmetatable({
    buffer = buffer,
    pending = "",
    blocks = {},
    changed = {},
    timer = assert(vim.uv.new_timer()),
  }, View)
  vim.api.nvim_create_autocmd("BufWinEnter", {
    buffer = buffer,
    callback = function()
      view:enter(vim.api.nvim_get_current_win())
    end,
  })
  vim.api.nvim_create_autocmd("BufWipeout", {
    buffer = buffer,
    callback = function()
      view.timer:close()
    end,
  })
  vim.iter(vim.fn.win_findbuf(buffer)):each(function(window)
    view:enter(window)
  end)
  return view
end

---@return boolean
function View:is_valid()
  return vim.api.nvim_buf_is_valid(self.buffer)
end

---@private
---@param window integer which shows the buffer from now on
function View:enter(window)
  set_window_options(window)
  vim.api.nvim_win_call(window, function()
    vim.cmd("normal! zE") -- What Neovim keeps of a window's folds is of the time when it was closed.
  end)
  for _, block in ipairs(self.blocks) do
    self:fold(window, block)
  end
end

--- Folds a block away in a window. What is put into it later is in the fold, too, if it is written by setbufline() and
--- appendbufline(): nvim_buf_set_lines() and nvim_buf_set_text() take a line out of a fold for each that they replace.
---@private
---@param window integer
---@param block sidecar.Block
function View:fold(window, block)
  local first = self:row(block) + 1
  vim.api.nvim_win_call(window, function()
    vim.cmd(("%d,%dfold"):format(first, first + block.size + 1))
  end)
end

--- The windows in which the end is on show, and is to stay on show.
---@return integer[]
function View:following()
  local last = vim.api.nvim_buf_line_count(self.buffer)
  return vim.tbl_filter(function(window)
    return vim.api.nvim_win_call(window, function()
      return vim.fn.line(".") == last or vim.fn.foldclosedend(".") == last
    end)
  end, vim.fn.win_findbuf(self.buffer))
end

---@param change fun()
function View:write(change)
  if not self:is_valid() then
    return
  end
  local following = self:following()
  vim.bo[self.buffer].modifiable = true
  change()
  vim.bo[self.buffer].modifiable = false
  local last = vim.api.nvim_buf_line_count(self.buffer)
  for _, window in ipairs(following) do
    vim.api.nvim_win_set_cursor(window, { last, 0 })
  end
end

--- Writes what has gathered. Everything that is not text that streams in calls it first.
function View:flush()
  local text, changed = self.pending, self.changed
  if text == "" and not next(changed) then
    return
  end
  self:write(function()
    if text ~= "" then
      local last = vim.api.nvim_buf_line_count(self.buffer)
      local lines = vim.split(text:gsub("\r\n", "\n"), "\n")
      vim.api.nvim_buf_set_text(self.buffer, last - 1, -1, last - 1, -1, lines)
      self.pending = "" -- Not before: CTRL-C may interrupt this function anywhere.
    end
    for block in pairs(changed) do
      self:write_headline(block)
    end
    self.changed = {}
  end)
end

---@private
function View:flush_soon()
  -- The timer itself is asked: CTRL-C may drop what was scheduled, and then the next text starts it again.
  if self.timer:is_active() or not self:is_valid() then
    return
  end
  self.timer:start(WRITE_EVERY_MS, 0, vim.schedule_wrap(function()
    self:flush()
  end))
end

--- Adds text at the end, as it streams in.
---@param text string
function View:append(text)
  self.pending = self.pending .. text
  self:flush_soon()
end

--- Whether the last line is the empty one that belongs to the last block.
---@return boolean
function View:ends_with_block()
  local block = self.blocks[#self.blocks]
  return block ~= nil and self:row(block) + block.size + 2 == vim.api.nvim_buf_line_count(self.buffer)
end

--- Leaves one of the empty lines at the end, of which models are fond.
---@private
function View:trim()
  while vim.deep_equal(vim.api.nvim_buf_get_lines(self.buffer, -3, -1, false), { "", "" }) do
    vim.fn.deletebufline(self.buffer, "$")
  end
end

--- Puts lines below the last one, or in the place of the only one while that is empty.
---@private
---@param lines string[]
---@param has_gap boolean whether an empty line is to be before them
---@return integer row of the first of them, from 0
function View:put_last(lines, has_gap)
  local last = vim.api.nvim_buf_line_count(self.buffer)
  local is_new = last == 1 and vim.api.nvim_buf_get_lines(self.buffer, 0, 1, true)[1] == ""
  local gap = has_gap and not is_new and { "" } or {}
  local at = is_new and 0 or last
  local first = at + #gap
  vim.api.nvim_buf_set_lines(self.buffer, at, -1, true, vim.list_extend(gap, lines))
  return first
end

--- Adds whole lines at the end, with an empty line before them.
---@param lines string[]
---@param group? string highlight of these lines
function View:add(lines, group)
  self:flush()
  self:write(function()
    self:trim()
    local is_last_empty = vim.api.nvim_buf_get_lines(self.buffer, -2, -1, true)[1] == ""
    local first = self:put_last(lines, not is_last_empty or self:ends_with_block())
    for row = first, group and first + #lines - 1 or -1 do
      vim.api.nvim_buf_set_extmark(self.buffer, MARKS, row, 0, { line_hl_group = group })
    end
  end)
end

---@return integer row of the headline, from 0
function View:row(block)
  return vim.api.nvim_buf_get_extmark_by_id(self.buffer, MARKS, block.mark, {})[1]
end

---@private
---@param block sidecar.Block
function View:write_headline(block)
  local row = self:row(block)
  vim.fn.setbufline(self.buffer, row + 1, block.headline)
  vim.api.nvim_buf_set_extmark(self.buffer, MARKS, row, 0, { id = block.mark, line_hl_group = block.group })
end

---@param lines string[]
---@return string[]
local function indented(lines)
  return vim.tbl_map(function(line)
    return "    " .. line
  end, lines)
end

--- Adds a block at the end. What is below its headline is folded away, with the empty line after it.
---@param headline string
---@param lines string[]
---@return sidecar.Block
function View:add_block(headline, lines)
  self:flush()
  local block = { mark = 0, size = #lines, headline = headline, group = "SidecarTool" }
  self:write(function()
    self:trim()
    local is_last_empty = vim.api.nvim_buf_get_lines(self.buffer, -2, -1, true)[1] == ""
    local added = vim.list_extend({ headline }, indented(lines))
    local row = self:put_last(vim.list_extend(added, { "" }), not is_last_empty)
    block.mark = vim.api.nvim_buf_set_extmark(self.buffer, MARKS, row, 0, { line_hl_group = block.group })
    for _, window in ipairs(vim.fn.win_findbuf(self.buffer)) do
      self:fold(window, block)
    end
  end)
  table.insert(self.blocks, block)
  return block
end

--- Puts more lines at the end of a block.
---@param block sidecar.Block
---@param lines string[]
function View:extend_block(block, lines)
  self:flush()
  self:write(function()
    vim.fn.appendbufline(self.buffer, self:row(block) + 1 + block.size, indented(lines))
    block.size = block.size + #lines
  end)
end

--- Changes the headline of a block, at the next write.
---@param block sidecar.Block
---@param headline string
---@param group? string
function View:set_headline(block, headline, group)
  block.headline, block.group = headline, group or block.group
  self.changed[block] = true
  self:flush_soon()
end

return View
