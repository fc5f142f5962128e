--- The windows of questions: one that stays out of the way until the person turns to it, and one to answer in.
local M = {}

local HOW_TO_ANSWER = " <C-g> or :Sidecar approve to answer "

--- Own choice: the size of a question that is about no chat in this tab page.
local CORNER_WIDTH, CORNER_HEIGHT = 72, 8
--- Own choice: lines that are longer are hard to read.
local MIDDLE_WIDTH = 100

---@class sidecar.Float
---@field lines string[]
---@field filetype string
---@field title string
---@field footer? string the keys, for the window to answer in

--- Where a window with so many lines is to be. It is lower than that where there is no room for all.
---@alias sidecar.Place fun(lines: integer): vim.api.keyset.win_config

---@param lines integer
---@param room integer
---@return integer height
local function fit(lines, room)
  return math.max(1, math.min(lines, room))
end

--- The lowest row that belongs to windows.
local function bottom()
  return vim.o.lines - vim.o.cmdheight - 1
end

---@type sidecar.Place
local function corner(lines)
  local width = math.min(CORNER_WIDTH, vim.o.columns - 2)
  local height = fit(lines, math.min(CORNER_HEIGHT, bottom() - 2))
  return { relative = "editor", anchor = "NE", row = 1, col = vim.o.columns, width = width, height = height }
end

--- Over the lower part of a window.
---@param window integer
---@param lines integer
---@return vim.api.keyset.win_config
local function over(window, lines)
  local width, room = vim.api.nvim_win_get_width(window), vim.api.nvim_win_get_height(window)
  local place = { relative = "win", win = window, anchor = "SW", row = room, col = 0 }
  place.width, place.height = math.max(1, width - 2), fit(lines, room - 2)
  return place
end

---@type sidecar.Place
local function middle(lines)
  local width, height = math.min(MIDDLE_WIDTH, vim.o.columns - 4), fit(lines, bottom() - 2)
  local row, col = math.floor((bottom() - height - 2) / 2), math.floor((vim.o.columns - width) / 2) - 1
  return { relative = "editor", row = row, col = col, width = width, height = height }
end

--- Opens a window as high as its lines are when they are wrapped, and keeps it so when the screen changes its size.
---@param float sidecar.Float
---@param is_entered boolean
---@param place sidecar.Place
---@return integer window, integer buffer
local function open(float, is_entered, place)
  local buffer = require("sidecar.scratch").new(float.filetype)
  vim.api.nvim_buf_set_lines(buffer, 0, -1, true, float.lines)
  vim.bo[buffer].modifiable = false
  local look = { border = "rounded", style = "minimal", title = (" %s "):format(float.title), footer = float.footer }
  local window = vim.api.nvim_open_win(buffer, is_entered, vim.tbl_extend("error", place(1), look))
  vim.wo[window].wrap = true
  vim.wo[window].linebreak = true
  local function put()
    if not vim.api.nvim_win_is_valid(window) then
      return true -- The event is of no interest any more.
    end
    vim.api.nvim_win_set_config(window, place(1)) -- How high the lines are depends on the width.
    vim.api.nvim_win_set_config(window, place(vim.api.nvim_win_text_height(window, {}).all))
  end
  put()
  vim.api.nvim_create_autocmd("VimResized", { desc = "Put a question where there is room", callback = put })
  return window, buffer
end

--- Shows a question over the transcript of its chat, or in the upper corner where that is not on show. What the person writes or
--- reads elsewhere stays in view, and the cursor where it is.
---@param float sidecar.Float
---@param chat? sidecar.Chat
---@return integer window, integer buffer
function M.aside(float, chat)
  float.footer = HOW_TO_ANSWER
  if chat and not chat:is_on_show() then
    float.title = ("chat %d: %s"):format(chat.number, float.title)
  end
  return open(float, false, function(lines)
    local window = chat and vim.fn.bufwinid(chat.view.buffer) or -1
    return window == -1 and corner(lines) or over(window, lines)
  end)
end

--- Shows a question in the middle of the screen, with the cursor in it.
---@param float sidecar.Float
---@return integer window, integer buffer
function M.center(float)
  return open(float, true, middle)
end

return M
