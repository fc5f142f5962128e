-- A buffer with unsaved changes in the real Neovim, and a run that reads and edits the file under it.
-- nvim --headless -u NONE -l neovim_editor.lua COMMAND_JSON OPTIONS_JSON FOLDER
local command, options, folder = vim.json.decode(arg[1]), vim.json.decode(arg[2]), arg[3]
local seen = { answers = {} }

local function wait_for(what, condition)
  assert(vim.wait(15000, condition, 5), "waited in vain for " .. what)
end

local function lines()
  return vim.api.nvim_buf_get_lines(0, 0, -1, false)
end

vim.cmd.edit(folder .. "/note.txt")
vim.api.nvim_buf_set_lines(0, 1, 2, false, { "two, unsaved" })
vim.bo.undolevels = vim.bo.undolevels -- What follows is undone by itself, as after typing.

local id = assert(vim.lsp.start({
  name = "agent-sidecar",
  cmd = command,
  root_dir = folder,
  init_options = options,
  workspace_folders = { { uri = vim.uri_from_fname(folder), name = "test" } },
}))
local client = assert(vim.lsp.get_client_by_id(id))
wait_for("initialize", function()
  return client.initialized
end)
wait_for("the buffer to be attached", function()
  return vim.lsp.buf_is_attached(0, id)
end)

local function submit(prompt)
  local answer
  client:request("agent/submit", { prompt = prompt }, function(err, result)
    answer = { err = err, result = result }
  end)
  wait_for(prompt, function()
    return answer
  end)
  table.insert(seen.answers, answer)
end

submit("edit what is on the screen")
seen.edited = lines()
seen.modified = vim.bo.modified
vim.cmd.undo()
seen.undone = lines()
submit("edit what is not there any more")
seen.after_stale = lines()

client:stop()
wait_for("the end", function()
  return client:is_stopped()
end)
io.write(vim.json.encode(seen), "\n")
