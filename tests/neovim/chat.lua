-- A run that streams, calls a tool, asks, and is allowed; one that is denied with a reason; a selection as context.
local support = dofile(vim.fs.dirname(arg[0]) .. "/support.lua")
local seen = support.seen

vim.cmd.edit("näme with spaces.txt")
vim.cmd("Sidecar ask write a note")
seen.aside = support.wait_for_question()
seen.entered_unasked = vim.api.nvim_get_current_win() == support.question()
support.wait_for_text("asking you")
seen.asking = support.text("chat/1")
vim.cmd("Sidecar ask in English, please")
vim.api.nvim_set_current_win((support.question()))
support.keys("o")
seen.answered_in_passing = #require("sidecar.state").questions == 0
support.told = {}
vim.cmd("wincmd t | only") -- Closes the question, too.
seen.told_of_question = table.remove(support.told)
vim.cmd("Sidecar chat")
vim.cmd("Sidecar approve")
seen.question = select(2, support.question())
support.keys("o")
support.wait_for_text("tokens in")
seen.allowed = support.text("chat/1")
seen.folds = support.folds()

local window = vim.fn.bufwinid("sidecar://chat/1")
seen.follows = vim.api.nvim_win_get_cursor(window)[1] == vim.api.nvim_buf_line_count(vim.api.nvim_win_get_buf(window))

vim.fn.win_execute(vim.fn.bufwinid("sidecar://prompt/1"), "close")
vim.cmd("Sidecar chat")
seen.prompt = vim.api.nvim_buf_get_name(0)
vim.api.nvim_buf_set_lines(0, 0, -1, true, { "write over #buffer, please", "now" })
support.keys("<CR>")
support.wait_for_question()
vim.cmd("Sidecar approve")
vim.ui.input = function(options, answer)
  seen.why = options.prompt
  answer("use the other file")
end
support.keys("d")
support.wait_for_text("I see.")
support.wait_for_end()
seen.denied = support.text("chat/1")

vim.cmd("wincmd t")
support.keys("gg0wvey:'<,'>Sidecar ask what is this?<CR>")
support.wait_for_text("It is with.")
support.wait_for_end()

-- A chat that is wiped out takes its run and its prompt with it.
vim.cmd("Sidecar ask for ever")
support.wait_for_text("Let me")
vim.cmd.bwipeout("sidecar://chat/1")
support.wait_for("the prompt's end", function()
  return vim.fn.bufexists("sidecar://prompt/1") == 0
end)
vim.cmd("Sidecar ask in another")
support.wait_for_text("Here I am.", "chat/2")
support.finish()
