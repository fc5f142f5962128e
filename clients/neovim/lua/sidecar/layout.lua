--- Where a chat stands on the screen: its transcript at the right of the tab page, its prompt below that.
local config = require("sidecar.config")

local M = {}

---@return integer columns
local function chat_width()
  local width = config.get().width
  return math.floor(width < 1 and vim.o.columns * width or width)
end

--- The window of this tab page that shows the buffer, or else another of its kind.
---@param buffer integer
---@return integer?
local function window_for(buffer)
  local windows = vim.api.nvim_tabpage_list_wins(0)
  local function showing(wanted)
    return vim.iter(windows):find(function(window)
      return wanted(vim.api.nvim_win_get_buf(window))
    end)
  end
  return showing(function(shown)
    return shown == buffer
  end) or showing(function(shown)
    return vim.bo[shown].filetype == vim.bo[buffer].filetype
  end)
end

--- Shows the buffer in the window, which may show it already.
---@param window integer
---@param buffer integer
local function put(window, buffer)
  if vim.api.nvim_win_get_buf(window) ~= buffer then
    vim.api.nvim_win_set_buf(window, buffer)
  end
end

--- Shows a chat in this tab page, in the place of the one that is on show there. The cursor stays where it is.
---@param chat sidecar.Chat
---@return integer window of its prompt
function M.open(chat)
  local above, below = window_for(chat.view.buffer), window_for(chat.prompt_buffer)
  local is_whole = above and below
  if above then
    put(above, chat.view.buffer)
  else
    local where = below and { split = "above", win = below } or { split = "right", win = -1, width = chat_width() }
    above = vim.api.nvim_open_win(chat.view.buffer, false, where)
  end
  if below then
    put(below, chat.prompt_buffer)
  else
    below = vim.api.nvim_open_win(chat.prompt_buffer, false, { split = "below", win = above })
  end
  if not is_whole then
    vim.api.nvim_win_set_height(below, config.get().prompt_height)
  end
  vim.wo[below][0].winfixheight = true
  vim.wo[above][0].winfixwidth = true
  return below
end

--- Closes the prompt with its chat, and lets chats keep their share when the screen changes its size.
---@param chat sidecar.Chat
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
  vim.api.nvim_create_autocmd("VimResized", {
    group = vim.api.nvim_create_augroup("sidecar.layout", {}),
    desc = "Give chats their share of the screen",
    callback = function()
      for _, window in ipairs(vim.api.nvim_list_wins()) do
        if vim.bo[vim.api.nvim_win_get_buf(window)].filetype == "sidecar" then
          vim.api.nvim_win_set_width(window, chat_width())
        end
      end
    end,
  })
end

return M
