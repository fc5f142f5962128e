--- The buffer in which the person writes a prompt, and its keys.
local state = require("sidecar.state")

local M = {}

---@param buffer integer
---@return string
local function take(buffer)
  local prompt = table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, true), "\n")
  vim.api.nvim_buf_set_lines(buffer, 0, -1, true, {})
  return prompt
end

--- Says above the prompt what the run is at, and which keys there are. What does not fit is cut off at the end.
---@param chat sidecar.Chat
function M.show_status(chat)
  local bar = "<CR> sends · <C-c> stops · <C-g> answers%<"
  if chat.status then
    bar = ("%%#SidecarStatus#%s%%* · <C-c> stops%%<"):format(chat.status)
  end
  for _, window in ipairs(vim.fn.win_findbuf(chat.prompt_buffer)) do
    vim.wo[window][0].winbar = bar
  end
end

---@param chat sidecar.Chat
---@return integer buffer
function M.new(chat)
  local buffer = require("sidecar.scratch").new("sidecar-prompt", ("sidecar://prompt/%d"):format(chat.number))
  local function send()
    chat:ask(take(buffer))
  end
  local function stop()
    chat:stop()
  end
  vim.keymap.set("n", "<CR>", send, { buffer = buffer, desc = "Send the prompt" })
  vim.keymap.set({ "n", "i" }, "<C-s>", send, { buffer = buffer, desc = "Send the prompt" })
  for _, each in ipairs({ buffer, chat.view.buffer }) do
    vim.keymap.set("n", "<C-c>", stop, { buffer = each, desc = "Stop the run" })
    vim.keymap.set({ "n", "i" }, "<C-g>", "<Cmd>Sidecar approve<CR>", { buffer = each, desc = "Answer a question" })
    vim.api.nvim_create_autocmd("BufEnter", {
      buffer = each,
      desc = "This chat is the one that was used last",
      callback = function()
        state.chat = chat
      end,
    })
  end
  vim.api.nvim_create_autocmd("BufWinEnter", {
    buffer = buffer,
    desc = "Say what the run is at",
    callback = function()
      M.show_status(chat)
    end,
  })
  vim.api.nvim_create_autocmd("BufWipeout", {
    buffer = chat.view.buffer,
    desc = "End what belongs to the chat",
    callback = vim.schedule_wrap(function()
      chat:close()
    end),
  })
  return buffer
end

return M
