-- Windows that are closed, opened again and restored by a session file; a person whose buffers are not modifiable.
local support = dofile(vim.fs.dirname(arg[0]) .. "/support.lua")
local seen = support.seen

--- The names of what this tab page shows, from left to right and from top to bottom.
local function layout()
  return vim.tbl_map(function(window)
    return vim.fn.fnamemodify(vim.api.nvim_buf_get_name(vim.api.nvim_win_get_buf(window)), ":.")
  end, vim.api.nvim_tabpage_list_wins(0))
end

vim.o.columns, vim.o.lines = 100, 40
vim.cmd.edit("a.txt")
vim.cmd("Sidecar ask read it")
support.wait_for_end()
seen.opened = layout()

-- Closed while nobody looks, more comes, and it is opened again: all of it is there, and folded.
local chat = vim.fn.bufwinid("sidecar://chat/1")
vim.fn.win_execute(chat, "close")
support.wait_for("the prompt's end", function()
  return #vim.api.nvim_tabpage_list_wins(0) == 1
end)
require("sidecar.state").chat:submit("read on", "read on")
support.wait_for_end()
vim.cmd("Sidecar chat")
seen.reopened = layout()
seen.folds = support.folds()
vim.cmd("close")
vim.cmd("Sidecar chat")
vim.cmd("Sidecar chat new")
seen.second = layout()
vim.cmd("Sidecar chat 1")
seen.first_again = layout()
vim.cmd("botright new | close")
vim.wait(20)
seen.prompt_height = vim.api.nvim_win_get_height(vim.fn.bufwinid("sidecar://prompt/1"))
vim.o.columns = 60
vim.api.nvim_exec_autocmds("VimResized", {})
seen.narrow = vim.api.nvim_win_get_width(vim.fn.bufwinid("sidecar://chat/1"))

-- What a session file leaves of a chat's windows is taken over by the chat of that name. This is the third one here.
vim.cmd("mksession! session.vim")
local restoring = table.concat(vim.fn.readfile("session.vim"), "\n"):gsub("(sidecar://%a+)/1", "%1/3")
vim.cmd("silent! %bwipeout!")
vim.api.nvim_exec2(restoring, {})
vim.cmd("wincmd t")
vim.go.modifiable = false
vim.cmd("Sidecar chat new")
seen.restored = layout()
seen.bar = vim.wo[vim.fn.bufwinid("sidecar://prompt/3")].winbar
seen.is_unlisted = not vim.bo[vim.fn.bufnr("sidecar://chat/3")].buflisted
vim.cmd("wincmd t | edit c.txt | wincmd b")
vim.cmd("Sidecar ask write what #buffer says")
support.wait_for_question()
vim.o.columns = 80
vim.api.nvim_exec_autocmds("VimResized", {})
seen.aside = vim.api.nvim_win_get_width((support.question()))
vim.cmd("Sidecar approve once")
support.wait_for_text("Written.", "chat/3")
support.wait_for_end()
seen.written = support.text("chat/3")
seen.reloaded = vim.fn.getbufline("a.txt", 1, "$")
support.finish()
