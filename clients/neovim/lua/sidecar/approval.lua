--- Asks whether a call may run: a window with the diff or the exact arguments, and a key for each answer.
local floats = require("sidecar.float")
local log = require("sidecar.log")
local state = require("sidecar.state")
local text = require("sidecar.text")

local M = {}

--- A question that waits for its answer.
---@class sidecar.Question
---@field params sidecar.RequestApprovalParams
---@field answer fun(result: sidecar.RequestApprovalResult)
---@field timer uv.uv_timer_t
---@field window? integer while it is on show

--- The key and the word (for `:Sidecar approve WORD`) of each decision.
local KEYS = { allowOnce = "o", allowSession = "s", allowAlways = "a", deny = "d", denyAndStop = "x" }
M.WORDS = { once = "allowOnce", session = "allowSession", always = "allowAlways", deny = "deny", stop = "denyAndStop" }

local MARKS = vim.api.nvim_create_namespace("sidecar.approval")

---@param question sidecar.Question
local function hide(question)
  local window = question.window
  question.window = nil
  if window and vim.api.nvim_win_is_valid(window) then
    vim.api.nvim_win_close(window, true)
  end
end

---@param question sidecar.Question
---@param result sidecar.RequestApprovalResult
local function finish(question, result)
  for position, other in ipairs(state.questions) do
    if other == question then
      table.remove(state.questions, position)
      hide(question)
      question.timer:close()
      question.answer(result)
      M.show(false)
      return
    end
  end
end

---@param question sidecar.Question
---@param decision sidecar.ApprovalDecision
local function is_offered(question, decision)
  return vim.iter(question.params.options):any(function(option)
    return option.decision == decision
  end)
end

---@param question sidecar.Question
---@param decision sidecar.ApprovalDecision
---@param reason? string
local function decide(question, decision, reason)
  if not is_offered(question, decision) then
    log.tell("this call cannot be answered so; the window shows which answers there are", vim.log.levels.WARN)
    return
  end
  finish(question, { decision = decision, reason = reason ~= "" and reason or nil })
end

---@param question sidecar.Question
local function deny_with_reason(question)
  vim.ui.input({ prompt = "Why not? (the model is told; may be empty) " }, function(reason)
    if reason then
      decide(question, "deny", reason)
    end
  end)
end

--- What may run, whole, and why there is a question.
---@param params sidecar.RequestApprovalParams
---@return string[]
local function content_lines(params)
  local needs = #params.permissions > 0 and " needs " .. table.concat(params.permissions, ", ") or ""
  local why = text.escape(("%s%s · %s"):format(params.toolName, needs, params.reason))
  return vim.list_extend({ why, "" }, params.diff and text.lines(params.diff) or text.arguments(params.input))
end

--- The answers, each with its key and with what is remembered. A rule that two share stands below the second.
---@param params sidecar.RequestApprovalParams
---@return string[]
local function option_lines(params)
  local lines = {}
  for position, option in ipairs(params.options) do
    lines[#lines + 1] = (" %s  %s"):format(KEYS[option.decision] or " ", text.escape(option.label))
    local next_option = params.options[position + 1]
    if option.rule and not (next_option and vim.deep_equal(option.rule, next_option.rule)) then
      lines[#lines + 1] = "    remembers " .. text.escape(vim.json.encode(option.rule))
    end
  end
  lines[#lines + 1] = ""
  return lines
end

local DIFF_GROUPS = { ["+"] = "Added", ["-"] = "Removed", ["@"] = "Special" }

---@param buffer integer
---@param params sidecar.RequestApprovalParams
---@param head integer how many lines are above the content
local function colour(buffer, params, head)
  local function mark(row, group)
    vim.api.nvim_buf_set_extmark(buffer, MARKS, row, 0, { line_hl_group = group })
  end
  for row, line in ipairs(vim.api.nvim_buf_get_lines(buffer, 0, -1, true)) do
    if row == 1 then
      mark(0, "Title")
    elseif row == head + 1 or vim.startswith(line, "    remembers ") and row <= head then
      mark(row - 1, "SidecarNote")
    elseif params.diff and row > head + 4 and DIFF_GROUPS[line:sub(1, 1)] then -- Below the names of the files.
      mark(row - 1, DIFF_GROUPS[line:sub(1, 1)])
    end
  end
end

---@param buffer integer
---@param question sidecar.Question
local function map_answers(buffer, question)
  for decision, key in pairs(KEYS) do
    vim.keymap.set("n", key, function()
      if decision == "deny" then
        deny_with_reason(question)
      else
        decide(question, decision)
      end
    end, { buffer = buffer, nowait = true, desc = decision })
  end
end

---@param buffer integer
local function map_later(buffer)
  for _, key in ipairs({ "q", "<Esc>" }) do
    vim.keymap.set("n", key, "<Cmd>close<CR>", { buffer = buffer, nowait = true, desc = "Answer later" })
  end
end

--- However the window is closed before there is an answer, the person is told how to come back to it.
---@param buffer integer
---@param question sidecar.Question
local function tell_when_closed(buffer, question)
  vim.api.nvim_create_autocmd("WinClosed", {
    buffer = buffer,
    desc = "Say where the question is",
    callback = function(event)
      if tonumber(event.match) == question.window then
        question.window = nil
        log.tell(":Sidecar approve shows the question again", vim.log.levels.INFO)
      end
    end,
  })
end

---@param question sidecar.Question
---@param is_entered boolean
local function open(question, is_entered)
  require("sidecar.highlights").define()
  local params = question.params
  local lines = { text.escape(params.title), "" }
  vim.list_extend(lines, is_entered and option_lines(params) or {})
  local head = #lines
  local waiting = #state.questions > 1 and (" (1 of %d)"):format(#state.questions) or ""
  local float = {
    lines = vim.list_extend(lines, content_lines(params)),
    filetype = "sidecar-approval",
    title = "May this run?" .. waiting,
    footer = " o s a allow · d deny · x deny and stop · q later ",
  }
  local buffer
  if is_entered then
    question.window, buffer = floats.center(float)
    map_answers(buffer, question)
  else
    question.window, buffer = floats.aside(float, state.runs[params.runId]) -- Who comes by has no key for an answer.
  end
  map_later(buffer)
  colour(buffer, params, head)
  tell_when_closed(buffer, question)
end

--- Shows the oldest question, if there is one. With `is_entered` the cursor goes into its window.
---@param is_entered boolean
function M.show(is_entered)
  local question = state.questions[1]
  if not question then
    return
  end
  if question.window and vim.api.nvim_win_is_valid(question.window) then
    if not is_entered then
      return
    end
    hide(question)
  end
  if is_entered then
    vim.cmd.stopinsert()
  end
  open(question, is_entered)
end

--- The answer to `agent/requestApproval`. Comes back when the person has answered.
---@param params sidecar.RequestApprovalParams
---@return sidecar.RequestApprovalResult
function M.ask(params)
  local waiting = coroutine.running()
  local question = { params = params, timer = assert(vim.uv.new_timer()) }
  function question.answer(result)
    -- Scheduled, so that the request is never answered before it is waited for.
    vim.schedule(function()
      coroutine.resume(waiting, result)
    end)
  end
  question.timer:start(params.deadlineMs, 0, vim.schedule_wrap(function()
    log.tell(("no answer in time: %s was denied"):format(text.escape(params.toolName)), vim.log.levels.WARN)
    finish(question, { decision = "deny", reason = "nobody answered in time" })
  end))
  table.insert(state.questions, question)
  -- The cursor stays where it is: what the person types at this moment must never be an answer.
  M.show(false)
  return coroutine.yield()
end

--- Answers the oldest question, for `:Sidecar approve`. Without a word, the cursor goes into its window. What a tool or a
--- server wants to know is asked where no call waits.
---@param word? string
---@param reason? string
function M.approve(word, reason)
  local question = state.questions[1]
  if not question and state.inputs[1] then
    state.inputs[1].begin()
  elseif not question then
    log.tell("no question is waiting", vim.log.levels.INFO)
  elseif not word then
    M.show(true)
  elseif M.WORDS[word] then
    decide(question, M.WORDS[word], reason)
  else
    local known = table.concat(vim.fn.sort(vim.tbl_keys(M.WORDS)), ", ")
    log.tell(("there is no answer %q; there are %s"):format(word, known))
  end
end

---@param is_meant fun(question: sidecar.Question): boolean
local function withdraw_where(is_meant)
  for _, question in ipairs(vim.tbl_filter(is_meant, state.questions)) do
    -- The sidecar takes no notice of an answer to a question that it has withdrawn.
    finish(question, { decision = "deny" })
  end
end

--- Takes away a question that was answered elsewhere.
---@param request_id string
function M.withdraw(request_id)
  withdraw_where(function(question)
    return question.params.requestId == request_id
  end)
end

--- Takes away the questions of a run that is over.
---@param run_id string
function M.withdraw_run(run_id)
  withdraw_where(function(question)
    return question.params.runId == run_id
  end)
end

--- Takes all questions away: the sidecar that asked is gone.
function M.withdraw_all()
  withdraw_where(function()
    return true
  end)
end

return M
