--- The wire to the sidecar's process, in the shape that Neovim's LSP client takes as its `cmd`.
--- Neovim's own wire keeps three things to itself that a person needs: which question `$/cancelRequest` withdraws, the answer
--- to a request that was cancelled, and what the process said last on stderr.

---@class sidecar.Wire
---@field dispatchers vim.lsp.rpc.Dispatchers
---@field on sidecar.WireCallbacks
---@field process vim.SystemObj
---@field last_id integer of our own requests
---@field waiting table<integer, fun(err?: table, result: any)> who waits for an answer
---@field questions table<string|integer, table> the params of the sidecar's open requests
---@field pieces string[] what came and is no whole frame yet
---@field size integer of the pieces, bytes
---@field wanted integer how many bytes there have to be before it is worth looking at them
local Wire = {}
Wire.__index = Wire

---@class sidecar.WireCallbacks
---@field withdrawn fun(params: table) a question with these params is one no more
---@field stderr fun(text: string) something that the process said to people
---@field faulty fun(reason: string) something came that cannot be used

local M = {}

--- LSP 3.17, `ErrorCodes`.
local INTERNAL_ERROR = -32603
--- The sidecar's own limit of a header: protocol.md, Transport.
local MAX_HEADER_BYTES = 8 * 1024
local SIGTERM = 15

--- Out ------------------------------------------------------------------------------------------------------

---@param message table
---@return boolean sent false: the process is gone
function Wire:send(message)
  if self.process:is_closing() then
    return false
  end
  message.jsonrpc = "2.0"
  local body = vim.json.encode(message)
  return (pcall(self.process.write, self.process, ("Content-Length: %d\r\n\r\n%s"):format(#body, body)))
end

---@param method string
---@param params? table
---@param callback fun(err?: table, result: any)
---@param on_settled? fun(id: integer)
---@return boolean, integer?
function Wire:request(method, params, callback, on_settled)
  self.last_id = self.last_id + 1
  local id = self.last_id
  self.waiting[id] = function(err, result)
    if on_settled then
      on_settled(id)
    end
    callback(err, result)
  end
  if not self:send({ id = id, method = method, params = params }) then
    self.waiting[id] = nil
    return false
  end
  return true, id
end

--- Answers a request of the sidecar; in a coroutine, because a person may have to answer first.
---@param request { id: string|integer, method: string, params?: table }
function Wire:answer(request)
  self.questions[request.id] = request.params
  local is_handled, result, err = pcall(self.dispatchers.server_request, request.method, request.params)
  self.questions[request.id] = nil
  if not is_handled then
    self.on.faulty(("%s could not be answered: %s"):format(request.method, result))
    err = { code = INTERNAL_ERROR, message = tostring(result) }
  end
  if err then
    self:send({ id = request.id, error = { code = err.code, message = err.message, data = err.data } })
  else
    self:send({ id = request.id, result = result == nil and vim.NIL or result })
  end
end

--- In -------------------------------------------------------------------------------------------------------

---@param message table
function Wire:take(message)
  if type(message.method) == "string" and message.id ~= nil then
    coroutine.wrap(self.answer)(self, message)
  elseif message.method == "$/cancelRequest" then
    local params = self.questions[message.params and message.params.id]
    if params then
      self.on.withdrawn(params)
    end
  elseif type(message.method) == "string" then
    self.dispatchers.notification(message.method, message.params)
  else
    local callback = self.waiting[message.id]
    if callback then
      self.waiting[message.id] = nil
      callback(message.error, message.result)
    end -- Else: nobody waits for it, or it is an error about something that could not be read.
  end
end

---@param text string
---@param position integer
---@return integer? begins, integer? length of the body; nil while the header is not whole
local function header(text, position)
  local last, body = text:find("\r\n\r\n", position, true)
  if not last then
    if #text - position > MAX_HEADER_BYTES then
      error("what the process writes is not the protocol: " .. text:sub(position, position + 60), 0)
    end
    return nil
  end
  local length = ("\n" .. text:sub(position, last):lower()):match("\n%s*content%-length%s*:%s*(%d+)")
  if not length then
    error("what the process writes is not the protocol: " .. text:sub(position, position + 60), 0)
  end
  return body + 1, tonumber(length)
end

--- The messages that are whole now.
---@param data string
---@return table[]
function Wire:read(data)
  table.insert(self.pieces, data)
  self.size = self.size + #data
  if self.size < self.wanted then
    return {}
  end
  local text, position, messages = table.concat(self.pieces), 1, {}
  self.wanted = 0
  while true do
    local begins, length = header(text, position)
    if not begins or begins + length - 1 > #text then
      self.wanted = begins and begins + length - position or 0
      break
    end
    local is_json, message = pcall(vim.json.decode, text:sub(begins, begins + length - 1), { luanil = { object = true } })
    table.insert(messages, is_json and type(message) == "table" and message or nil)
    position = begins + length
  end
  self.pieces = { text:sub(position) }
  self.size = #self.pieces[1]
  return messages
end

---@param data string
function Wire:receive(data)
  local is_read, messages = pcall(self.read, self, data)
  vim.schedule(function()
    if not is_read then
      self.on.faulty(messages)
      self.process:kill(SIGTERM)
      return
    end
    for _, message in ipairs(messages) do
      local is_taken, failure = pcall(self.take, self, message)
      if not is_taken then
        self.on.faulty(tostring(failure))
      end
    end
  end)
end

--- The process ----------------------------------------------------------------------------------------------

--- Starts the process. Raises an error where that is not possible.
---@param command string[]
---@param dispatchers vim.lsp.rpc.Dispatchers
---@param where { cwd: string, env?: table<string, string> }
---@param on sidecar.WireCallbacks
---@return vim.lsp.rpc.PublicClient
function M.start(command, dispatchers, where, on)
  local wire = setmetatable({
    dispatchers = dispatchers,
    on = on,
    last_id = 0,
    waiting = {},
    questions = {},
    pieces = {},
    size = 0,
    wanted = 0,
  }, Wire)
  wire.process = vim.system(command, {
    stdin = true,
    cwd = where.cwd,
    env = where.env,
    detach = vim.fn.has("win32") == 0, -- CTRL-C in the terminal is not for the sidecar.
    stdout = function(_, data)
      if data then
        wire:receive(data)
      end
    end,
    stderr = vim.schedule_wrap(function(_, data)
      if data then
        on.stderr(data)
      end
    end),
  }, function(ended)
    dispatchers.on_exit(ended.code, ended.signal)
  end)
  return {
    request = function(...)
      return wire:request(...)
    end,
    notify = function(method, params)
      return wire:send({ method = method, params = params })
    end,
    is_closing = function()
      return wire.process:is_closing()
    end,
    terminate = function()
      wire.process:kill(SIGTERM)
    end,
  }
end

return M
