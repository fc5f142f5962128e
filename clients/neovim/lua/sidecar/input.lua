--- Asks the person what a tool or a server wants to know: `vim.ui.select` where there is a choice, else `vim.ui.input`.
local floats = require("sidecar.float")
local log = require("sidecar.log")
local state = require("sidecar.state")
local text = require("sidecar.text")

local M = {}

--- A question that waits for its answer.
---@class sidecar.Input
---@field request_id string
---@field begin fun() asks the person
---@field answer fun(result: sidecar.RequestInputResult) takes it away with this answer

---@alias sidecar.InputCallback fun(value: any) nil: the person closed it

--- The choices of a schema and how they are shown; nil where any value goes.
---@param schema table
---@return any[]?, string[]?
local function choices(schema)
  if schema.type == "boolean" then
    return { true, false }, { "yes", "no" }
  end
  local titled = schema.oneOf or schema.anyOf
  if titled and titled[1] and titled[1].const ~= nil then
    return vim.tbl_map(function(option)
      return option.const
    end, titled), vim.tbl_map(function(option)
      return option.title or tostring(option.const)
    end, titled)
  end
  return schema.enum, schema.enumNames or (schema.enum and vim.tbl_map(tostring, schema.enum))
end

--- What was typed as the schema's type, or what is wrong with it.
---@param typed string
---@param schema table
---@return any, string?
local function read(typed, schema)
  if schema.type == nil or schema.type == "string" then
    if schema.minLength and vim.fn.strchars(typed) < schema.minLength then
      return nil, ("at least %d characters are wanted"):format(schema.minLength)
    end
    if schema.maxLength and vim.fn.strchars(typed) > schema.maxLength then
      return nil, ("at most %d characters are wanted"):format(schema.maxLength)
    end
    return typed
  end
  if schema.type == "number" or schema.type == "integer" then
    local number = tonumber(typed)
    if not number or (schema.type == "integer" and number % 1 ~= 0) then
      return nil, ("a %s is wanted"):format(schema.type)
    end
    if (schema.minimum and number < schema.minimum) or (schema.maximum and number > schema.maximum) then
      return nil, "the number is out of bounds"
    end
    return number
  end
  local is_json, value = pcall(vim.json.decode, typed)
  if not is_json or type(value) ~= "table" then
    return nil, ("an %s is wanted, as JSON"):format(schema.type)
  end
  return value
end

---@param label string
---@param schema table
---@param callback sidecar.InputCallback
local function ask_text(label, schema, callback)
  local function take(typed)
    if typed == nil then
      callback(nil)
      return
    end
    local value, fault = read(typed, schema)
    if fault then
      log.tell(fault, vim.log.levels.WARN)
      ask_text(label, schema, callback)
    else
      callback(value)
    end
  end
  if schema.format == "password" then
    local is_typed, secret = pcall(vim.fn.inputsecret, label .. ": ")
    take(is_typed and secret ~= "" and secret or nil)
    return
  end
  local default = schema.default ~= nil and tostring(schema.default) or nil
  vim.ui.input({ prompt = label .. ": ", default = default }, take)
end

--- Asks for one value.
---@param label string
---@param schema table
---@param callback sidecar.InputCallback
local function ask_value(label, schema, callback)
  local values, names = choices(schema)
  if not values then
    ask_text(label, schema, callback)
    return
  end
  local positions = vim.fn.range(1, #values)
  vim.ui.select(positions, {
    prompt = label,
    kind = "sidecar_input",
    format_item = function(position)
      return text.escape(tostring(names[position] or values[position]))
    end,
  }, function(position)
    if position == nil then
      callback(nil)
    else
      callback(values[position])
    end
  end)
end

--- The names of an object's fields: required ones first, in their order.
---@param schema table
---@return string[]
local function field_names(schema)
  local names = vim.deepcopy(schema.required or {})
  local rest = vim.tbl_filter(function(name)
    return not vim.tbl_contains(names, name)
  end, vim.tbl_keys(schema.properties))
  return vim.list_extend(names, vim.fn.sort(rest))
end

--- Asks for the fields of an object, one after the other.
---@param schema table
---@param callback sidecar.InputCallback
local function ask_fields(schema, callback)
  local names, content = field_names(schema), vim.empty_dict()
  local function ask_next(position)
    local name = names[position]
    if not name then
      callback(content)
      return
    end
    local field = schema.properties[name] or {}
    local label = text.escape(field.title or name)
    label = field.description and ("%s (%s)"):format(label, text.escape(field.description)) or label
    ask_value(label, field, function(value)
      if value == nil then
        callback(nil)
        return
      end
      if value ~= "" or vim.tbl_contains(schema.required or {}, name) then
        content[name] = value
      end
      ask_next(position + 1)
    end)
  end
  ask_next(1)
end

--- Shows who asks and what, until it is answered.
---@param params sidecar.RequestInputParams
---@param chat? sidecar.Chat whose run it is about
---@return fun() close
local function show_message(params, chat)
  local lines = text.lines(params.message)
  if params.url then
    vim.list_extend(lines, { "", text.escape(params.url) })
  end
  local float = { lines = lines, filetype = "sidecar-input", title = text.escape(params.source) .. " asks" }
  local window = floats.aside(float, chat)
  local status = chat and chat.status
  if chat then
    chat:set_status("asking you, <C-g> answers")
  end
  return function()
    if chat and chat.run then
      chat:set_status(status)
    end
    if vim.api.nvim_win_is_valid(window) then
      vim.api.nvim_win_close(window, true)
    end
  end
end

---@param params sidecar.RequestInputParams
---@param callback fun(result: sidecar.RequestInputResult)
local function ask_to_visit(params, callback)
  local choices_shown = { "Open it in the browser", "I have opened it", "Decline" }
  vim.ui.select(choices_shown, { prompt = "Visit this page?" }, function(_, position)
    if position == 1 then
      vim.ui.open(params.url)
    end
    callback({ action = ({ "accept", "accept", "decline" })[position] or "cancel" })
  end)
end

--- Asks by the editor's own ways of asking.
---@param params sidecar.RequestInputParams
---@param answer fun(result: sidecar.RequestInputResult)
local function begin(params, answer)
  local schema = params.schema or {}
  local function take(content)
    answer(content == nil and { action = "cancel" } or { action = "accept", content = content })
  end
  local is_asked, failure = pcall(function()
    if params.url then
      ask_to_visit(params, answer)
    elseif schema.properties then
      ask_fields(schema, take)
    else
      ask_value("Answer", schema, take)
    end
  end)
  if not is_asked then -- CTRL-C in a menu, for example.
    log.add("a question was left without an answer: " .. tostring(failure))
    answer({ action = "cancel" })
  end
end

--- The answer to `agent/requestInput`. Comes back when the person has answered. He is shown the question at once and asked
--- when he turns to it: what he types at this moment must never be an answer.
---@param params sidecar.RequestInputParams
---@return sidecar.RequestInputResult
function M.ask(params)
  local waiting = coroutine.running()
  local close = show_message(params, state.runs[params.runId])
  local input = { request_id = params.requestId }
  function input.answer(result)
    local position = vim.iter(ipairs(state.inputs)):find(function(_, other)
      return other == input
    end)
    if position then
      table.remove(state.inputs, position)
      close()
      vim.schedule(function()
        coroutine.resume(waiting, result)
      end)
    end
  end
  function input.begin()
    vim.cmd.stopinsert()
    begin(params, input.answer)
  end
  table.insert(state.inputs, input)
  vim.defer_fn(function()
    input.answer({ action = "cancel" })
  end, params.deadlineMs)
  return coroutine.yield()
end

--- Takes away a question that the sidecar has withdrawn. What asks in the place of `vim.ui` may stay on the screen.
---@param request_id string
function M.withdraw(request_id)
  for _, input in ipairs(vim.list_slice(state.inputs)) do
    if input.request_id == request_id then
      input.answer({ action = "cancel" })
    end
  end
end

--- Takes all questions away: the sidecar that asked is gone.
function M.withdraw_all()
  for _, input in ipairs(vim.list_slice(state.inputs)) do
    input.answer({ action = "cancel" })
  end
end

return M
