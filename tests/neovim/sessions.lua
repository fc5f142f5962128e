-- A conversation of another Neovim is picked and goes on; the lists, the log, completion and the health check.
local support = dofile(vim.fs.dirname(arg[0]) .. "/support.lua")
local seen = support.seen

if support.given.begins then
  vim.cmd("Sidecar ask remember 7")
  support.wait_for_text("tokens in")
  seen.live = support.text("chat/1")
  support.finish()
  return
end

support.choice = "Never" -- The workspace brings a server along and is not trusted.
vim.cmd("Sidecar sessions")
support.wait_for("the question about trust", function()
  return require("sidecar.state").inputs[1]
end)
vim.cmd("Sidecar approve")
support.wait_for("the sessions", function()
  return #support.picked >= 2
end)
support.choice = "remember 7"
vim.cmd("Sidecar sessions")
support.wait_for_text("Seven.")
seen.resumed = support.text("chat/1")
seen.cursor_in = vim.api.nvim_buf_get_name(0)
vim.cmd("Sidecar ask which number")
support.wait_for_text("It was 7.")
support.wait_for_text("tokens in")
vim.cmd("Sidecar sessions")
support.wait_for("the third list", function()
  return #support.picked >= 4
end)
seen.chats = #require("sidecar.state").chats

-- Questions with several fields are asked one by one; what does not fit is asked again.
support.choice = "Blue"
local typed = { "x", "7", "", "red" }
vim.ui.input = function(options, answer)
  answer(table.remove(typed, 1))
end
coroutine.wrap(function()
  local colour = { type = "string", oneOf = { { const = "b", title = "Blue" }, { const = "r", title = "Red" } } }
  local fields = { count = { type = "integer" }, colour = colour, note = { type = "string" } }
  seen.answer = require("sidecar.input").ask({
    requestId = "inp-1",
    message = "How many?\nAnd which?",
    schema = { type = "object", properties = fields, required = { "count", "colour" } },
    source = "shop",
    deadlineMs = 300000,
  })
end)()
seen.asked_unasked = seen.answer ~= nil
vim.cmd("Sidecar approve")
support.wait_for("the answer", function()
  return seen.answer
end)

support.choice = "second"
vim.cmd("Sidecar model")
support.wait_for("the model", function()
  return require("sidecar.state").chat.model
end)
vim.cmd("Sidecar chat")
seen.bar = vim.wo.winbar
vim.cmd("Sidecar ask who are you")
support.wait_for_text("The second.")
support.wait_for_end()
vim.cmd("Sidecar model test/50%")
seen.named = vim.wo.winbar

vim.cmd("Sidecar tools")
support.wait_for_text("read_file (builtin)", "tools")
vim.cmd("Sidecar servers")
support.wait_for_text("broken: failed, 0 tools", "servers")
seen.servers = support.text("servers")
vim.cmd("Sidecar log")
seen.log = support.text("log")
seen.completed = {
  vim.fn.getcompletion("Sidecar ", "cmdline"),
  vim.fn.getcompletion("Sidecar s", "cmdline"),
  vim.fn.getcompletion("Sidecar approve d", "cmdline"),
}
vim.cmd("Sidecar nonsense")
vim.g.health = { style = "float" }
vim.cmd("checkhealth sidecar")
seen.health = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, true), "\n")
support.finish()
