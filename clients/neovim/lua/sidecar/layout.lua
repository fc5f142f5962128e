--- Where a chat stands on the screen: its transcript at the right of the tab page, its prompt below that.
local config = require("sidecar.config")

local M = {}

local TRANSCRIPT, PROMPT = "sidecar", "sidecar-prompt"

---@return integer columns
local function chat_width()
  local width = config.get().width
  return math.floor(width < 1 and vim.o.columns * width or width)
end

--- A window of this tab page whose buffer has this file type; the one with the given buffer rather than another.
---@param filetype string
---@param buffer? integer
---@return integer?
local function window_with(filetype, buffer)
  local windows = vim.tbl_filter(function(window)
    return vim.bo[vim.api.nvim_win_get_buf(window)].filetype == filetype
  end, vim.api.nvim_tabpage_list_wins(0))
  return vim.iter(windows):find(function(window)
    return vim.api.nvim_win_get_buf(window) == buffer
  end) or windows[1]
end

--- Gives the prompt its height. Where windows below it close, Neovim gives it their room in spite of 'winfixheight'.
local function settle()
  local prompt = window_with(PROMPT)
  if prompt and window_with(TRANSCRIPT) then
    vim.api.nvim_win_set_height(prompt, config.get().prompt_height)
  end
end

--- Gives every transcript its share of the screen.
local function share()
  for _, window in ipairs(vim.api.nvim_list_wins()) do
    if vim.bo[vim.api.nvim_win_get_buf(window)].filetype == TRANSCRIPT then
      vim.api.nvim_win_set_width(window, chat_width())
    end
  end
end

--- Shows a chat in this tab page, in the place of the one that is on show there. The cursor stays where it is.
---@param chat sidecar.Chat
---@return integer window of its prompt
function M.open(chat)
  local above = window_with(TRANSCRIPT, chat.view.buffer)
  local below = window_with(PROMPT, chat.prompt_buffer)
  if above then
    vim.api.nvim_win_set_buf(above, chat.view.buffer)
  else
    local where = below and { split = "above", win = below } or { split = "right", win = -1, width = chat_width() }
    above = vim.api.nvim_open_win(chat.view.buffer, false, where)
  end
  if below then
    vim.api.nvim_win_set_buf(below, chat.prompt_buffer)
  else
    below = vim.api.nvim_open_win(chat.prompt_buffer, false, { split = "below", win = above })
  end
  vim.wo[above][0].winfixwidth = true
  vim.wo[below][0].winfixheight = true
  settle()
  return below
end

--- Keeps the windows of chats in order when others close and when the screen changes its size.
---@param chat sidecar.Chat a new one
function M.watch(chat)
  vim.api.nvim_create_autocmd("WinClosed", {
    buffer = chat.view.buffer,
    desc = "Close the chat's prompt",
    callback = vim.schedule_wrap(function()
      local below = vim.fn.bufwinid(chat.prompt_buffer)
      if below ~= -1 and vim.fn.bufwinid(chat.view.buffer) == -1 then
        pcall(vim.api.nvim_win_close, below, false) -- Not possible where it is the last window.
      end
    end),
  })
  local group = vim.api.nvim_create_augroup("sidecar.layout", {})
  vim.api.nvim_create_autocmd("WinClosed", { group = group, callback = vim.schedule_wrap(settle) })
  vim.api.nvim_create_autocmd("VimResized", { group = group, callback = share })
end

return M
