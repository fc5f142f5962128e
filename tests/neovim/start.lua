-- Nothing but the plugin's start.
local support = dofile(vim.fs.dirname(arg[0]) .. "/support.lua")
io.write(vim.json.encode(support.seen), "\n")
