#!/usr/bin/env lua
-- A host of Agent Sidecar in plain Lua 5.4 with a POSIX shell: lua5.4 host.lua PROMPT...

local null = {} -- What `nil` cannot say in a table.

-- Lua's pipes go one way, so the other way is a named one. The shell tells the id of the process, and buries it.
local fifo = os.tmpname()
assert(os.remove(fifo) and os.execute("mkfifo -m 600 " .. fifo))
local from = assert(io.popen("exec 3<" .. fifo .. "; agent-sidecar --cwd . <&3 & exec 3<&-; echo $!; wait"))
local to = assert(io.open(fifo, "r+")) -- "w" would have writing to a sidecar that is gone end Lua by SIGPIPE.
local pid = from:read("n", "L")
os.remove(fifo)
io.stdout:setvbuf("no")

local function tell(...) io.stderr:write(string.format(...), "\n") end

local function finish(status)
  to:close()
  for _ = 1, 30 do
    if not os.execute(("{ kill -0 %d && { sleep 0.1 || sleep 1; }; } 2>/dev/null"):format(pid)) then os.exit(status) end
  end
  os.execute("kill -9 " .. pid)
  os.exit(status)
end

local function give_up(...) tell(...) finish(1) end

local function encode(value)
  if value == null then return "null" end
  if type(value) == "string" then
    return '"' .. value:gsub('[%c"\\]', function(c) return ("\\u%04x"):format(c:byte()) end) .. '"'
  end
  if type(value) ~= "table" then return tostring(value) end
  local parts = {}
  for _, each in ipairs(value) do parts[#parts + 1] = encode(each) end
  if #value > 0 then return "[" .. table.concat(parts, ",") .. "]" end
  for name, each in pairs(value) do parts[#parts + 1] = encode(name) .. ":" .. encode(each) end
  return "{" .. table.concat(parts, ",") .. "}"
end

local escapes = { b = "\b", f = "\f", n = "\n", r = "\r", t = "\t" }

local function unescape(text)
  text = text:gsub("\\(.)(%x?%x?%x?%x?)", function(sign, hex)
    return sign == "u" and utf8.char(tonumber(hex, 16)) or (escapes[sign] or sign) .. hex
  end)
  return (text:gsub("\xED[\xA0-\xAF][\x80-\xBF]\xED[\xB0-\xBF][\x80-\xBF]", function(pair)
    local high, low = utf8.codepoint(pair, 1, 4, true) -- Two halves of a surrogate pair.
    return utf8.char(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))
  end))
end

-- A value and where it ends; `,` and `:` are passed over like spaces.
local function decode(text, at)
  at = text:find("[^%s,:]", at)
  local first = text:sub(at, at)
  if first == '"' then
    local close = text:find('["\\]', at + 1)
    while text:sub(close, close) == "\\" do close = text:find('["\\]', close + 2) end
    return unescape(text:sub(at + 1, close - 1)), close + 1
  elseif first ~= "{" and first ~= "[" then
    local word = text:match("^[%w+.-]+", at)
    if word == "true" or word == "false" then return word == "true", at + #word end
    return tonumber(word), at + #word
  end
  local value, count, name = {}, 0, nil
  at = text:find("[^%s,:]", at + 1)
  while not text:find("^[%]}]", at) do
    count, name = count + 1, count + 1
    if first == "{" then name, at = decode(text, at) end
    value[name], at = decode(text, at)
    at = text:find("[^%s,:]", at)
  end
  return value, at + 1
end

local function send(message)
  message.jsonrpc = "2.0"
  local body = encode(message)
  to:write("Content-Length: ", #body, "\r\n\r\n", body)
  to:flush()
end

local function receive()
  local length
  for line in from:lines() do
    if line:find("^\r?$") then break end
    length = tonumber(line:lower():match("^content%-length:%s*(%d+)")) or length
  end
  local body = length and from:read(length)
  if not body or #body < length then give_up("the sidecar has ended") end
  return (decode(body, 1))
end

local function answer(method, params)
  if method == "agent/requestApproval" then
    tell("* %s %s [y/n]", params.title, encode(params.input))
    return { result = { decision = (io.read() or ""):find("^y") and "allowOnce" or "deny" } }
  elseif method == "tools/execute" then
    return { result = { ok = true, data = _VERSION } }
  end
  return { error = { code = -32601, message = "there is no " .. method .. " here" } }
end

local show = {
  assistantTextDelta = function(event) io.write(event.text) end,
  turnComplete = function() print() end,
  toolExecutionCompleted = function(event) tell("* %s %s", event.isError and "failed" or "ok", event.toolName) end,
  runCompleted = function(event) tell("* %s", event.stopReason) end,
}

-- The result; what comes before it is dealt with as it comes. A run has the id of its request.
local function request(own_id, method, params)
  send({ id = own_id, method = method, params = params })
  while true do
    local message = receive()
    local id, asked = message.id, message.method
    if asked and id then
      local reply = answer(asked, message.params)
      reply.id = id
      send(reply)
    elseif asked == "agent/event" and message.params.runId == own_id then
      local way = show[message.params.event.type]
      if way then way(message.params.event) end
    elseif not asked and id == own_id then
      local failure = message.error
      if failure then give_up("%s: %s", failure.data and failure.data.kind, failure.message) end
      return message.result
    end -- What a host does not know it passes over.
  end
end

local able = { experimental = { agentSidecar = { approvals = true, hostTools = true } } }
local extras = request("1", "initialize", { processId = null, capabilities = able }).capabilities.experimental
local version = extras and extras.agentSidecar and extras.agentSidecar.protocolVersion or ""
if not version:find("^1%.") then give_up("there is no sidecar of version 1 to work with") end
send({ method = "initialized", params = {} })
local tool = { name = "host_language", description = "The language of this host", inputSchema = {} }
request("2", "tools/register", { tools = { tool } })

local session_id
for _, prompt in ipairs(arg) do -- Each goes on with the session of the one before.
  local id = ("lua-%d-%x"):format(os.time(), math.random(0))
  session_id = request(id, "agent/submit", { prompt = prompt, runId = id, sessionId = session_id }).sessionId
end

request("3", "shutdown")
send({ method = "exit" })
finish(0)
