-- The one command. Everything else is loaded when it is first used.
if vim.g.loaded_sidecar then
  return
end
vim.g.loaded_sidecar = true

vim.api.nvim_create_user_command("Sidecar", function(arguments)
  require("sidecar.commands").run(arguments)
end, {
  nargs = "*",
  range = true,
  desc = "Talk to the agent sidecar",
  complete = function(lead, line)
    return require("sidecar.commands").complete(lead, line)
  end,
})
