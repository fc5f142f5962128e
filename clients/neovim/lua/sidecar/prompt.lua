--- The buffer in which the person writes a prompt, and its keys.
local scratch = require("sidecar.scratch")
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
  local model = chat.model and (" · " .. require("sidecar.text").escape(chat.model):gsub("%%", "%%%%")) or ""
  local bar = ("<CR> sends · <C-c> stops · <C-g> answers%s%%<"):format(model)
  if chat.status then
    bar = ("%%#SidecarStatus#%s%%* · <C-c> stops%%<"):format(chat.status)
  end
  for _, window in ipairs(vim.fn.win_findbuf(chat.prompt_buffer)) do
    vim.wo[window][0].winbar = bar
  end
end

---@param chat sidecar.Chat
---@param buffer integer
local function map_keys(chat, buffer)
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
  end
end

---@param chat sidecar.Chat
---@param buffer integer
local function watch(chat, buffer)
  local function on(event, where, desc, callback)
    vim.api.nvim_create_autocmd(event, { buffer = where, desc = desc, callback = callback })
  end
  for _, each in ipairs({ buffer, chat.view.buffer }) do
    on("BufEnter", each, "This chat is the one that was used last", function()
      state.chat = chat
    end)
  end
  on("BufWinEnter", buffer, "Make a window fit for a prompt, and say there what the run is at", function()
    scratch.look(vim.api.nvim_get_current_win())
    M.show_status(chat)
  end)
  on("BufWipeout", chat.view.buffer, "End what belongs to the chat", vim.schedule_wrap(function()
    chat:close()
  end))
end

--- Gives a new chat its prompt.
---@param chat sidecar.Chat
function M.add(chat)
  local buffer = scratch.new("sidecar-prompt", ("sidecar://prompt/%d"):format(chat.number))
  vim.bo[buffer].textwidth = 0 -- The model is told lines as the person ends them.
  chat.prompt_buffer = buffer
  map_keys(chat, buffer)
  watch(chat, buffer)
  vim.iter(vim.fn.win_findbuf(buffer)):each(scratch.look)
  M.show_status(chat)
end

return M
