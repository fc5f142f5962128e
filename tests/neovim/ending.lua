-- Stop that stops; a sidecar that is killed in the middle of a run; options that it refuses; a program that is missing.
local support = dofile(vim.fs.dirname(arg[0]) .. "/support.lua")
local seen = support.seen
local client = require("sidecar.client")

local function pid()
  return vim.iter(vim.api.nvim_get_proc_children(vim.fn.getpid())):next()
end

-- Stopped while the model is silent.
vim.cmd("Sidecar ask think long")
support.wait_for_text("Well")
local before = vim.uv.hrtime()
vim.cmd("Sidecar stop")
support.wait_for_text("> stopped")
seen.stop_ms = (vim.uv.hrtime() - before) / 1e6
vim.cmd("Sidecar ask and now")
support.wait_for_text("Here.")
support.wait_for_end()
seen.stopped = support.text("chat/1")

-- Another chat beside it, each with a run and a question; the sidecar dies while both wait.
vim.cmd("Sidecar ask write a")
support.wait_for_question()
vim.cmd("Sidecar chat new")
vim.cmd("Sidecar ask write b")
support.wait_for("two questions", function()
  return #require("sidecar.state").questions == 2
end)
local killed = pid()
vim.uv.kill(killed, "sigkill")
support.wait_for_end()
seen.is_new = pid() ~= killed
seen.question_left = support.question() ~= nil
seen.crashed = { support.text("chat/1"), support.text("chat/2") }
vim.cmd("Sidecar ask go on")
support.wait_for_text("Still here.", "chat/2")
support.wait_for_end()

local function last_note()
  return support.text("chat/2"):match(".*\n(> [^\n]*)")
end

-- What goes wrong at the start stands in the chat, and mended by another setup.
client.stop()
support.wait_for("the end", function()
  return not client.get()
end)
require("sidecar").setup({ cmd = { "no-such-program" } })
vim.cmd("Sidecar ask hello")
support.wait_for_end()
seen.missing = last_note()
vim.fn.writefile({ "#!/nowhere/python3" }, "no-interpreter")
vim.fn.setfperm("no-interpreter", "rwx------")
require("sidecar").setup({ cmd = { vim.fn.fnamemodify("no-interpreter", ":p") } })
vim.cmd("Sidecar ask hello")
support.wait_for_end()
seen.not_startable = support.text("chat/2")
require("sidecar").setup({ cmd = support.given.command, options = { model = { "wrong" } } })
vim.cmd("Sidecar ask hello")
support.wait_for_end()
seen.refused = last_note()
seen.wrong_setting = select(2, pcall(require("sidecar").setup, { modle = "x" }))
require("sidecar").setup({ cmd = support.given.command, options = support.given.options })
vim.cmd("Sidecar restart")
vim.cmd("Sidecar ask hello")
vim.cmd("Sidecar ask and now") -- Joins the run that is only about to begin, or follows it.
support.wait_for_text("Here.", "chat/2")
support.wait_for_end()
support.finish()
