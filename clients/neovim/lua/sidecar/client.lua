--- The sidecar's process as an LSP client of this Neovim: started when first needed, started again when it dies.
local config = require("sidecar.config")
local log = require("sidecar.log")
local rpc = require("sidecar.rpc")
local state = require("sidecar.state")
local text = require("sidecar.text")

local M = {}

--- Own choice: a sidecar that ends by itself more often than so within a minute is not started again.
local MAX_CRASHES, CRASH_WINDOW_MS = 3, 60000

--- The version of the protocol that this plugin is written for: its major number.
local MAJOR_VERSION = "1"

--- Own choice: how long Neovim waits for the sidecar when it is left. One that still runs then gets SIGTERM.
local LEAVE_LIMIT_MS = 1000

--- A sidecar is gone within 5 s of its end being asked for: protocol.md, ground rule 7.1.
local STOP_LIMIT_MS = 5000

---@return vim.lsp.Client?
function M.get()
  return state.client_id and vim.lsp.get_client_by_id(state.client_id) or nil
end

---@param failure? string
local function tell_waiting(failure)
  local waiting = state.waiting
  state.waiting = {}
  for _, callback in ipairs(waiting) do
    callback(failure)
  end
end

--- A file of the person's own, so that tools read and edit it as it stands in the editor.
---@param buffer integer
local function is_file(buffer)
  return vim.api.nvim_buf_is_loaded(buffer)
    and vim.bo[buffer].buftype == ""
    and vim.bo[buffer].buflisted
    and vim.api.nvim_buf_get_name(buffer) ~= ""
end

---@param buffer integer
local function attach(buffer)
  if state.client_id and is_file(buffer) and not vim.lsp.buf_is_attached(buffer, state.client_id) then
    vim.lsp.buf_attach_client(buffer, state.client_id)
  end
end

local function attach_files()
  vim.iter(vim.api.nvim_list_bufs()):each(attach)
  vim.api.nvim_create_autocmd({ "BufReadPost", "BufNewFile", "BufFilePost" }, {
    group = vim.api.nvim_create_augroup("sidecar.files", {}),
    desc = "Let the sidecar's tools see this buffer",
    callback = function(event)
      attach(event.buf)
    end,
  })
end

--- Looks for changes behind the editor's back, as commands make them: tools see a file as the editor has it. Where there
--- are unsaved changes as well, Neovim asks which to keep; that is left to a moment at which the person is not typing.
function M.reload_files()
  local client = M.get()
  for buffer in pairs(client and client.attached_buffers or {}) do
    if not vim.bo[buffer].modified then
      pcall(vim.cmd.checktime, buffer) -- Not possible everywhere, for example in the window of the command line.
    end
  end
end

local function capabilities()
  local ours = vim.lsp.protocol.make_client_capabilities()
  ours.experimental = { agentSidecar = { protocolVersion = "1.0", approvals = true, input = true } }
  return ours
end

local function handlers()
  return {
    ["agent/event"] = function(_, params)
      require("sidecar.events").receive(params)
    end,
    ["agent/requestApproval"] = function(_, params)
      return require("sidecar.approval").ask(params)
    end,
    ["agent/requestInput"] = function(_, params)
      return require("sidecar.input").ask(params)
    end,
    ["agent/inputDone"] = function() end,
    ["tools/changed"] = function() end,
    ["session/changed"] = function() end,
    ["mcp/offersChanged"] = function() end,
    ["mcp/statusChanged"] = function(_, server)
      local reason = server.error and ": " .. server.error.message or ""
      log.add(("server %s is %s%s"):format(server.name, server.status, reason))
      if server.status == "failed" or server.status == "needsAuth" then
        -- Short, so that it stays on one line and nobody has to press ENTER.
        log.tell(("server %s: %s; see :Sidecar servers"):format(server.name, server.status), vim.log.levels.WARN)
      end
    end,
    ["window/logMessage"] = function(_, params)
      log.add(params.message)
    end,
  }
end

--- Whether it may be started once more.
local function may_restart()
  local now = vim.uv.now()
  state.crashes_ms = vim.tbl_filter(function(time)
    return now - time < CRASH_WINDOW_MS
  end, state.crashes_ms)
  table.insert(state.crashes_ms, now)
  return #state.crashes_ms <= MAX_CRASHES
end

---@param how string
---@param client_id integer
local function ended(how, client_id)
  if client_id ~= state.client_id then
    return
  end
  local was_wanted, was_ready = state.is_stopping, #state.waiting == 0
  state.client_id, state.is_stopping = nil, false
  require("sidecar.approval").withdraw_all()
  require("sidecar.input").withdraw_all()
  if state.last_words ~= "" then
    how = ("%s (%s)"):format(how, state.last_words)
  end
  log.add("the sidecar ended with " .. how)
  if was_wanted then
    -- Whoever has asked since wants the next one.
    local waiting = state.waiting
    state.waiting = {}
    vim.iter(waiting):each(M.start)
    return
  end
  if not was_ready then
    tell_waiting(("the sidecar ended with %s before it was ready; see :checkhealth sidecar"):format(how))
    return
  end
  if not may_restart() then
    log.tell("the sidecar keeps ending by itself; see :Sidecar log, then :Sidecar restart")
    require("sidecar.chat").abandon_all("the sidecar ended with " .. how)
    return
  end
  log.tell(("the sidecar ended with %s and is being started again"):format(how), vim.log.levels.WARN)
  M.start(require("sidecar.chat").catch_up_all)
end

--- The handshake failed, and nothing will come of this process any more.
---@param reason string
local function refused(reason)
  local client = M.get()
  state.is_stopping = true
  tell_waiting(reason)
  if client then
    client:stop(true)
  end
end

--- What is wrong with whom we talk to; nil where it is a sidecar that this plugin knows how to talk to.
---@param result any the answer to `initialize`
---@return string?
local function stranger(result)
  local agent = vim.tbl_get(result or {}, "capabilities", "experimental", "agentSidecar")
  if type(agent) ~= "table" then
    return "the program is another language server; name agent-sidecar in setup({ cmd = { … } })"
  end
  local version = tostring(agent.protocolVersion)
  if vim.split(version, ".", { plain = true })[1] ~= MAJOR_VERSION then
    local advice = "the sidecar speaks version %s of the protocol, this plugin %s; update the older one"
    return advice:format(version, MAJOR_VERSION)
  end
end

--- What the process says to people: its last line is told when it ends.
---@param data string
local function hear(data)
  vim.lsp.log.error("agent-sidecar", "stderr", data)
  local lines = vim.split(vim.trim(data), "\n")
  state.last_words = lines[#lines] ~= "" and lines[#lines] or state.last_words
end

---@param params table of the question that the sidecar withdraws
local function withdraw(params)
  require("sidecar.approval").withdraw(params.requestId)
  require("sidecar.input").withdraw(params.requestId)
end

--- When Neovim is left, a sidecar that does not go is ended. Without this it would only find its stdin closed.
local function end_on_leave()
  vim.api.nvim_create_autocmd("VimLeavePre", {
    group = vim.api.nvim_create_augroup("sidecar.leave", {}),
    desc = "End the sidecar",
    callback = function()
      local client = M.get()
      if client then
        M.stop()
        vim.wait(LEAVE_LIMIT_MS, client.rpc.is_closing, 10)
        client.rpc.terminate() -- Its `stop` does nothing more once it was called; what is gone feels nothing.
      end
    end,
  })
end

--- Neovim's client is told that each end is a good one, and so tells the person nothing: `ended` has better words.
---@param dispatchers vim.lsp.rpc.Dispatchers
---@param exit { how?: string } becomes how the process ended
---@return vim.lsp.rpc.Dispatchers
local function quiet(dispatchers, exit)
  local function on_exit(code, signal)
    exit.how = signal ~= 0 and ("signal %d"):format(signal) or ("status %d"):format(code)
    dispatchers.on_exit(0, 0)
  end
  return vim.tbl_extend("force", dispatchers, { on_exit = on_exit })
end

--- Neovim's client tells nobody when `initialize` is refused, waits for its answer for ever and takes any language server,
--- so the answer is looked at here.
---@param connection vim.lsp.rpc.PublicClient
---@param limit_secs number
local function look_at_the_handshake(connection, limit_secs)
  local request = connection.request
  function connection.request(method, params, callback, ...)
    if method ~= "initialize" then
      return request(method, params, callback, ...)
    end
    local is_answered = false
    vim.defer_fn(function()
      if not is_answered and not connection.is_closing() then
        refused(("the sidecar did not answer within %g s of its start; see start_limit_secs"):format(limit_secs))
      end
    end, limit_secs * 1000)
    return request(method, params, function(err, result)
      is_answered = true
      local reason = err and ("%s; mend the options in setup()"):format(err.message) or stranger(result)
      if reason then
        refused(reason)
      else
        callback(err, result)
      end
    end, ...)
  end
end

--- How the process is started.
---@param settings sidecar.Settings
---@param folder string
---@param exit { how?: string } becomes how the process ended, or why it could not be started
---@return fun(dispatchers: vim.lsp.rpc.Dispatchers): vim.lsp.rpc.PublicClient
local function spawner(settings, folder, exit)
  return function(dispatchers)
    state.last_words = ""
    local callbacks = { withdrawn = withdraw, stderr = hear, faulty = log.add }
    local where = { cwd = folder, env = settings.env }
    local is_spawned, connection = pcall(rpc.start, settings.cmd, quiet(dispatchers, exit), where, callbacks)
    if not is_spawned then
      exit.how = text.of_error(connection)
      error(exit.how, 0)
    end
    look_at_the_handshake(connection, settings.start_limit_secs)
    return connection
  end
end

--- Starts the process if there is none, and calls back when it is ready or cannot be.
---@param callback fun(failure?: string)
function M.start(callback)
  local client = M.get()
  if client and client.initialized and not state.is_stopping then
    callback()
    return
  end
  table.insert(state.waiting, callback)
  if client then
    return
  end
  local settings = config.get()
  if vim.fn.executable(settings.cmd[1]) == 0 then
    local advice = "there is no program %q; install agent-sidecar, or name it in setup({ cmd = { … } })"
    tell_waiting(advice:format(settings.cmd[1]))
    return
  end
  local folder, exit = vim.fn.getcwd(), {}
  log.add("starting " .. table.concat(settings.cmd, " "))
  local is_spawned, id = pcall(vim.lsp.start, {
    name = "agent-sidecar",
    cmd = spawner(settings, folder, exit),
    root_dir = folder,
    workspace_folders = { { uri = vim.uri_from_fname(folder), name = vim.fs.basename(folder) } },
    init_options = config.initialization_options(),
    capabilities = capabilities(),
    handlers = handlers(),
    on_init = function()
      log.add("the sidecar is ready")
      attach_files()
      end_on_leave()
      tell_waiting()
    end,
    on_exit = vim.schedule_wrap(function(_, _, client_id)
      ended(exit.how, client_id)
    end),
  }, {
    attach = false,
    reuse_client = function()
      return false
    end,
  })
  state.client_id = is_spawned and id or nil
  if not state.client_id then
    local advice = "%q could not be started: %s; see :checkhealth sidecar"
    tell_waiting(advice:format(settings.cmd[1], exit.how or not is_spawned and id or "no reason was given"))
  end
end

--- Sends a request as soon as the sidecar is ready. A failure of any kind reaches `callback` as an error.
---@param method string
---@param params table?
---@param callback fun(err: { message: string, data?: table }?, result: any)
function M.request(method, params, callback)
  M.start(function(failure)
    local client = M.get()
    if failure or not client then
      callback({ message = failure or "there is no sidecar" })
      return
    end
    local sent = client:request(method, params or vim.empty_dict(), function(err, result)
      callback(err, result)
    end)
    if not sent then
      callback({ message = "the sidecar has just ended; try again" })
    end
  end)
end

--- Ends the process. With `force` at once, and then it counts as a crash: it is started again.
---@param force? boolean
function M.stop(force)
  local client = M.get()
  if client then
    state.is_stopping = not force
    client:stop(force)
  end
end

--- Ends the process and starts it again, with the settings as they are now.
function M.restart()
  local client = M.get()
  state.crashes_ms = {}
  M.stop()
  M.start(require("sidecar.chat").catch_up_all)
  vim.defer_fn(function()
    if client and not client.rpc.is_closing() then
      client.rpc.terminate()
    end
  end, STOP_LIMIT_MS)
end

return M
