--- The transcript of a chat as a buffer: text that streams in, and calls of tools as folds. Knows no protocol.
local state = require("sidecar.state")

--- A call of a tool: its headline and, below it, lines that fold away.
---@class sidecar.Block
---@field mark integer the extmark on the headline
---@field size integer lines below the headline
---@field headline? string what the headline is to become at the next write
---@field group? string its highlight

---@class sidecar.View
---@field buffer integer
---@field private pending string text that is not written yet
---@field private levels (integer|string)[] the fold level of each line, as 'foldexpr' wants it
---@field private changed table<sidecar.Block, true> headlines that are not written yet
---@field private timer uv.uv_timer_t
local View = {}
View.__index = View

--- How long text is gathered before it is written: 25 writes a second read as a stream and leave time for keys.
local WRITE_EVERY_MS = 40

local MARKS = vim.api.nvim_create_namespace("sidecar.view")

--- The option 'foldexpr' of a chat window.
---@param line integer
---@return integer|string
function View.fold_level(line)
  local view = state.views[vim.api.nvim_get_current_buf()]
  return view and view.levels[line] or 0
end

---@param buffer integer
local function set_buffer_options(buffer)
  local options = vim.bo[buffer]
  options.buftype = "nofile"
  options.bufhidden = "hide"
  options.swapfile = false
  options.modifiable = false
  options.undolevels = -1
  options.filetype = "sidecar"
  if not pcall(vim.treesitter.start, buffer, "markdown") then
    options.syntax = "markdown"
  end
end

---@param buffer integer
local function set_window_options(buffer)
  for _, window in ipairs(vim.fn.win_findbuf(buffer)) do
    local options = vim.wo[window][0]
    options.wrap = true
    options.linebreak = true
    options.number = false
    options.relativenumber = false
    options.signcolumn = "no"
    options.spell = false
    options.conceallevel = 0 -- What tools are given is shown as it is.
    options.foldmethod = "expr"
    options.foldexpr = "v:lua.require'sidecar.view'.fold_level(v:lnum)"
    options.foldtext = ""
    options.foldlevel = 0
    options.foldenable = true
  end
end

---@param name string the buffer's name
---@return sidecar.View
function View.new(name)
  local buffer = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_name(buffer, name)
  set_buffer_options(buffer)
  local view = setmetatable({
    buffer = buffer,
    pending = "",
    levels = { 0 },
    changed = {},
    timer = assert(vim.uv.new_timer()),
  }, View)
  state.views[buffer] = view
  vim.api.nvim_create_autocmd("BufWinEnter", {
    buffer = buffer,
    callback = function()
      set_window_options(buffer)
    end,
  })
  vim.api.nvim_create_autocmd("BufWipeout", {
    buffer = buffer,
    callback = function()
      state.views[buffer] = nil
      view.timer:close()
    end,
  })
  return view
end

---@return boolean
function View:is_valid()
  return vim.api.nvim_buf_is_valid(self.buffer)
end

--- The windows in which the end is on show, and is to stay on show.
---@return integer[]
function View:following()
  local last = vim.api.nvim_buf_line_count(self.buffer)
  return vim.tbl_filter(function(window)
    return vim.api.nvim_win_get_cursor(window)[1] == last
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

--- Puts lines below line `after` (0: at the top), with their fold level.
---@param after integer
---@param lines string[]
---@param level integer|string
function View:insert(after, lines, level)
  local shifted = vim.list_slice(self.levels, after + 1)
  for offset = 1, #lines do
    self.levels[after + offset] = level
  end
  for offset, value in ipairs(shifted) do
    self.levels[after + #lines + offset] = value
  end
  vim.api.nvim_buf_set_lines(self.buffer, after, after, true, lines)
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
      for offset = 1, #lines - 1 do
        self.levels[last + offset] = 0
      end
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

--- Adds whole lines at the end, with an empty line before them.
---@param lines string[]
---@param group? string highlight of these lines
function View:add(lines, group)
  self:flush()
  self:write(function()
    local last = vim.api.nvim_buf_line_count(self.buffer)
    local is_empty = vim.api.nvim_buf_get_lines(self.buffer, -2, -1, true)[1] == ""
    local is_first = last == 1 and is_empty
    local added = vim.list_extend((is_empty or is_first) and {} or { "" }, lines)
    local at = is_first and 0 or last
    self:insert(at, added, 0)
    if group then
      local first = at + #added - #lines
      for row = first, first + #lines - 1 do
        vim.api.nvim_buf_set_extmark(self.buffer, MARKS, row, 0, { line_hl_group = group })
      end
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
  vim.api.nvim_buf_set_lines(self.buffer, row, row + 1, true, { block.headline })
  vim.api.nvim_buf_set_extmark(self.buffer, MARKS, row, 0, { id = block.mark, line_hl_group = block.group })
end

--- Adds a block at the end. What is below its headline is folded away.
---@param headline string
---@param lines string[]
---@return sidecar.Block
function View:add_block(headline, lines)
  self:flush()
  local block = { mark = 0, size = 0, headline = headline, group = "SidecarTool" }
  self:add({ headline })
  self:write(function()
    local last = vim.api.nvim_buf_line_count(self.buffer)
    self.levels[last] = ">1"
    block.mark = vim.api.nvim_buf_set_extmark(self.buffer, MARKS, last - 1, 0, { line_hl_group = block.group })
    self:insert(last, { "" }, 0)
  end)
  self:extend_block(block, lines)
  return block
end

--- Puts more lines at the end of a block.
---@param block sidecar.Block
---@param lines string[]
function View:extend_block(block, lines)
  self:flush()
  self:write(function()
    self:insert(
      self:row(block) + 1 + block.size,
      vim.tbl_map(function(line)
        return "    " .. line
      end, lines),
      1
    )
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

--- Takes everything away.
function View:clear()
  self.pending, self.changed = "", {}
  self:write(function()
    vim.api.nvim_buf_clear_namespace(self.buffer, MARKS, 0, -1)
    self.levels = { 0 }
    vim.api.nvim_buf_set_lines(self.buffer, 0, -1, true, {})
  end)
end

return View
