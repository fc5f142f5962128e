-- Watches the plugin in a Neovim on a real terminal (tmux) from outside: what stands on the screen, and how soon each of
-- `keys` keys is answered, while nothing happens and while an answer streams in.
local given = vim.json.decode(arg[1])
local seen = {}

local function tmux(...)
  local result = vim.system({ "tmux", "-S", given.tmux, ... }, { text = true }):wait(10000)
  assert(result.code == 0, result.stderr)
  return result.stdout
end

local function screen()
  return tmux("capture-pane", "-p", "-t", "sidecar")
end

local function wait_for(wanted)
  local is_there = vim.wait(15000, function()
    return screen():find(wanted, 1, true) ~= nil
  end, 50)
  assert(is_there, ("waited in vain for %s on:\n%s"):format(wanted, screen()))
  return screen()
end

local function keys(...)
  tmux("send-keys", "-t", "sidecar", ...)
end

local size = { "-x", "110", "-y", "32", "-c", given.folder }
local start = { given.nvim, "-u", given.init, "--listen", given.socket, given.file }
tmux("-f", "/dev/null", "new-session", "-d", "-s", "sidecar", unpack(vim.list_extend(size, start)))
wait_for("words of a file")
keys(":Sidecar", "Enter")
wait_for("<CR> sends")
keys("i", "write a note", "C-s", "and more")
seen.question = wait_for("May this run?")
keys("C-g")
seen.answering = wait_for("q later")
keys("o")
seen.done = wait_for("tokens in")

-- The prompt, first alone and then while a long answer streams in.
keys("dd")
local channel = vim.fn.sockconnect("pipe", given.socket, { rpc = true })
local function evaluate(code, ...)
  return vim.rpcrequest(channel, "nvim_exec_lua", code, { ... })
end

local function first_line()
  return evaluate("return vim.api.nvim_buf_get_lines(0, 0, -1, true)[1]")
end

--- Types, and gives the milliseconds until each key stood in the buffer.
local function key_times_ms()
  local times, typed_before = {}, #first_line()
  for count = 1, given.keys do
    local began = vim.uv.hrtime()
    vim.rpcrequest(channel, "nvim_input", "x")
    repeat
    until #first_line() == typed_before + count
    times[count] = (vim.uv.hrtime() - began) / 1e6
    vim.wait(15)
  end
  return times
end

--- The lines of the chat's buffer, each of which is a few words of the answer.
local function line_count()
  return evaluate([[return vim.api.nvim_buf_line_count(require("sidecar.state").chats[1].view.buffer)]])
end

vim.rpcrequest(channel, "nvim_input", "i")
seen.idle_ms = key_times_ms()
evaluate([[require("sidecar").ask("tell me a lot")]])
wait_for("**word**")
local lines_before, began_ms = line_count(), vim.uv.now()
seen.streaming_ms = key_times_ms()
seen.was_streaming = evaluate([[return next(require("sidecar.state").runs) ~= nil]])
seen.lines_a_second = (line_count() - lines_before) / ((vim.uv.now() - began_ms) / 1000)
seen.streaming = screen()
-- CTRL-C while a key is awaited in insert mode ends that mode, as ever, and interrupts whatever the editor is at.
keys("C-c")
vim.wait(200)
seen.later = screen()
keys("C-c")
seen.stopped = wait_for("> stopped")
pcall(vim.rpcrequest, channel, "nvim_command", "qall!")
vim.fn.chanclose(channel)
io.write(vim.json.encode(seen), "\n")
