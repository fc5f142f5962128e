-- Drives a sidecar from the real Neovim as a stock LSP client, and prints what it saw as one JSON line.
-- nvim --headless -u NONE -l neovim_host.lua COMMAND_JSON OPTIONS_JSON FOLDER
local command, options, folder = vim.json.decode(arg[1]), vim.json.decode(arg[2]), arg[3]
local seen = { events = {}, questions = {}, progress = {} }

-- The editor's own message with buttons, answered as a person would: by the first button.
vim.lsp.handlers["window/showMessageRequest"] = function(_, params)
  table.insert(seen.questions, params)
  return params.actions[1]
end

vim.api.nvim_create_autocmd("LspProgress", {
  callback = function(event)
    table.insert(seen.progress, event.data.params.value.kind)
  end,
})

local function wait_for(what, condition)
  assert(vim.wait(15000, condition, 5), "waited in vain for " .. what)
end

local id = assert(vim.lsp.start({
  name = "agent-sidecar",
  cmd = command,
  root_dir = folder,
  init_options = options,
  workspace_folders = { { uri = vim.uri_from_fname(folder), name = "test" } },
  handlers = {
    ["agent/event"] = function(_, params)
      table.insert(seen.events, params.event.type)
    end,
  },
}))
local client = assert(vim.lsp.get_client_by_id(id))
wait_for("initialize", function()
  return client.initialized
end)
seen.server = client.server_info
seen.offers = client.server_capabilities.experimental.agentSidecar

local answer
client:request("tools/list", nil, function(err, result)
  answer = { err = err, result = result }
end)
wait_for("tools/list without params", function()
  return answer
end)
seen.tools = #answer.result.tools

answer = nil
client:request("agent/submit", { prompt = "write a note", workDoneToken = "bar" }, function(err, result)
  answer = { err = err, result = result }
end)
wait_for("agent/submit", function()
  return answer
end)
seen.answer = answer

answer = nil
client:request("agent/submit", vim.empty_dict(), function(err, result)
  answer = { err = err }
end)
wait_for("an error", function()
  return answer
end)
seen.error = answer.err

client:stop()
wait_for("the end", function()
  return client:is_stopped()
end)
io.write(vim.json.encode(seen), "\n")
