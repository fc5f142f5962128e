--- The windows of questions: one that stays out of the way until the person turns to it, and one to answer in.
local M = {}

--- How a person gets from the first to the second.
local HOW_TO_ANSWER = " <C-g> or :Sidecar approve to answer "

--- Own choice: lines of a question that is about no chat in this tab page.
local CORNER_HEIGHT = 8
local CORNER_WIDTH = 72

---@class sidecar.Float
---@field lines string[]
---@field filetype string
---@field title string

--- Opens the window as high as its lines are when they are wrapped, if there is room.
---@param float sidecar.Float
---@param is_entered boolean
---@param room { width: integer, height: integer } without the border
---@param where vim.api.keyset.win_config
---@return integer window, integer buffer
local function open(float, is_entered, room, where)
  local buffer = require("sidecar.scratch").new(float.filetype)
  vim.api.nvim_buf_set_lines(buffer, 0, -1, true, float.lines)
  vim.bo[buffer].modifiable = false
  where.width, where.height = math.max(1, room.width), 1
  where.border, where.style = "rounded", "minimal"
  where.title = (" %s "):format(float.title)
  local window = vim.api.nvim_open_win(buffer, is_entered, where)
  vim.wo[window].wrap = true
  vim.wo[window].linebreak = true
  local height = vim.api.nvim_win_text_height(window, {}).all
  vim.api.nvim_win_set_height(window, math.max(1, math.min(height, room.height)))
  return window, buffer
end

--- Shows a question over the transcript of its chat, or in a corner where that is not on show. What the person writes or
--- reads elsewhere stays in view, and the cursor where it is.
---@param float sidecar.Float
---@param chat? sidecar.Chat
---@return integer window, integer buffer
function M.aside(float, chat)
  local below = chat and vim.fn.bufwinid(chat.view.buffer) or -1
  if below ~= -1 then
    local width, height = vim.api.nvim_win_get_width(below), vim.api.nvim_win_get_height(below)
    local where = { relative = "win", win = below, anchor = "SW", row = height, col = 0, footer = HOW_TO_ANSWER }
    return open(float, false, { width = width - 2, height = height - 2 }, where)
  end
  local bottom = vim.o.lines - vim.o.cmdheight - 1
  local where = { relative = "editor", anchor = "SE", row = bottom, col = vim.o.columns, footer = HOW_TO_ANSWER }
  local room = { width = math.min(CORNER_WIDTH, vim.o.columns - 2), height = math.min(CORNER_HEIGHT, bottom - 2) }
  return open(float, false, room, where)
end

--- Shows a question in the middle of the screen, with the cursor in it.
---@param float sidecar.Float
---@param footer string
---@return integer window, integer buffer
function M.center(float, footer)
  local room = { width = math.min(100, vim.o.columns - 4), height = vim.o.lines - vim.o.cmdheight - 3 }
  local where = { relative = "editor", row = 1, col = math.floor((vim.o.columns - room.width) / 2) - 1 }
  where.footer = footer
  local window, buffer = open(float, true, room, where)
  local left_over = vim.o.lines - vim.o.cmdheight - vim.api.nvim_win_get_height(window) - 3
  vim.api.nvim_win_set_config(window, { relative = "editor", row = math.floor(left_over / 2), col = where.col })
  return window, buffer
end

return M
