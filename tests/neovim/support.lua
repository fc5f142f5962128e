-- What every scenario starts with: the plugin set up as a person would, and eyes and fingers to use it.
-- nvim --headless -u NONE --cmd "set rtp^=PLUGIN" -l SCENARIO.lua GIVEN_JSON
local M = { given = vim.json.decode(arg[1]), seen = {}, told = {}, picked = {}, progress = {} }

vim.cmd.cd(vim.fn.fnameescape(M.given.folder))
local before = vim.uv.hrtime()
vim.cmd.runtime("plugin/sidecar.lua")
require("sidecar").setup({ cmd = M.given.command, options = M.given.options })
M.seen.start_ms = (vim.uv.hrtime() - before) / 1e6
M.seen.loaded = vim.fn.sort(vim.tbl_filter(function(name)
  return vim.startswith(name, "sidecar")
end, vim.tbl_keys(package.loaded)))

-- As plugins for notifications and pickers do.
vim.notify = function(message)
  table.insert(M.told, message)
end
vim.ui.select = function(items, options, choose)
  local names = vim.tbl_map(options.format_item or tostring, items)
  table.insert(M.picked, { prompt = options.prompt, names = names })
  vim.schedule(function()
    for position, name in ipairs(names) do
      if name:find(M.choice, 1, true) then
        choose(items[position], position)
        return
      end
    end
    choose(nil)
  end)
end

vim.api.nvim_create_autocmd("LspProgress", {
  callback = function(event)
    table.insert(M.progress, event.data.params.value.kind)
  end,
})

--- The text of a buffer of the plugin.
function M.text(name)
  local buffer = vim.fn.bufnr("^sidecar://" .. name .. "$")
  return buffer == -1 and "" or table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, true), "\n")
end

function M.wait_for(what, condition)
  if not vim.wait(15000, condition, 5) then
    error(("waited in vain for %s; chat:\n%s\ntold: %s"):format(what, M.text("chat/1"), vim.inspect(M.told)))
  end
end

function M.wait_for_text(wanted, name)
  M.wait_for(wanted, function()
    return M.text(name or "chat/1"):find(wanted, 1, true)
  end)
end

--- Waits until no run goes on.
function M.wait_for_end()
  M.wait_for("the run's end", function()
    return next(require("sidecar.state").runs) == nil
  end)
end

--- The closed folds of the chat, each with the lines that are hidden in it.
function M.folds()
  local folds = {}
  vim.api.nvim_win_call(vim.fn.bufwinid("sidecar://chat/1"), function()
    for line = 1, vim.fn.line("$") do
      if vim.fn.foldclosed(line) == line then
        table.insert(folds, vim.fn.getline(line, vim.fn.foldclosedend(line)))
      end
    end
  end)
  return folds
end

--- Types keys as a person does.
function M.keys(keys)
  vim.api.nvim_feedkeys(vim.api.nvim_replace_termcodes(keys, true, true, true), "xt", false)
end

--- The window with a question, and its text; nil while there is none.
function M.question()
  for _, window in ipairs(vim.api.nvim_list_wins()) do
    local buffer = vim.api.nvim_win_get_buf(window)
    if vim.bo[buffer].filetype == "sidecar-approval" then
      return window, table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, true), "\n")
    end
  end
end

function M.wait_for_question()
  M.wait_for("a question", M.question)
  return select(2, M.question())
end

--- Prints what was seen, and ends the sidecar.
function M.finish()
  M.seen.told, M.seen.picked, M.seen.progress = M.told, M.picked, M.progress
  local client = require("sidecar.client").get()
  require("sidecar.client").stop()
  M.wait_for("the end", function()
    return not client or client:is_stopped()
  end)
  io.write(vim.json.encode(M.seen), "\n")
end

return M
