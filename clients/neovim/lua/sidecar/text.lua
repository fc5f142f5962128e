--- Text from models and servers, made fit to be shown: as it is, with nothing hidden.
local M = {}

--- Code points that hide, reorder or fake text: controls, soft hyphen, bidi, zero-width, separators, tags.
local HIDDEN = {
  { 0x00, 0x1f },
  { 0x7f, 0x9f },
  { 0xad, 0xad },
  { 0x34f, 0x34f },
  { 0x61c, 0x61c },
  { 0x115f, 0x1160 },
  { 0x17b4, 0x17b5 },
  { 0x180b, 0x180f },
  { 0x200b, 0x200f },
  { 0x2028, 0x202e },
  { 0x2060, 0x206f },
  { 0x3164, 0x3164 },
  { 0xfe00, 0xfe0f },
  { 0xfeff, 0xfeff },
  { 0xffa0, 0xffa0 },
  { 0xfff9, 0xfffb },
  { 0xe0000, 0xe0fff },
}

local NAMED = { [0x0a] = "\\n", [0x0d] = "\\r", [0x09] = "\t" }

---@param code integer
local function is_hidden(code)
  for _, range in ipairs(HIDDEN) do
    if code >= range[1] and code <= range[2] then
      return true
    end
  end
  return false
end

--- One line in which every character that could hide or reorder text is an escape.
---@param text string
---@return string
function M.escape(text)
  -- Whatever is not plain ASCII, a whole character at a time.
  return (text:gsub("[^\32-\126][\128-\191]*", function(character)
    local first = character:byte()
    local code = first < 0x80 and first or vim.fn.char2nr(character)
    return is_hidden(code) and (NAMED[code] or ("\\u{%x}"):format(code)) or nil
  end))
end

--- The lines of a text, each escaped.
---@param text string
---@return string[]
function M.lines(text)
  return vim.tbl_map(M.escape, vim.split((text:gsub("\r\n", "\n"):gsub("\n$", "")), "\n"))
end

--- A number, boolean, list or object as JSON, a string as it is.
---@param value any
---@return string
local function plain(value)
  return type(value) == "string" and value or vim.json.encode(value)
end

--- The arguments that tell what a call is about come first, so that a narrow window shows them.
local RANKS = { path = 1, command = 2, url = 3, pattern = 4, query = 5, question = 6 }

---@param input table<string, any>
---@return string[]
local function argument_names(input)
  local names = vim.tbl_keys(input)
  table.sort(names, function(one, other)
    local rank, other_rank = RANKS[one] or math.huge, RANKS[other] or math.huge
    return rank < other_rank or rank == other_rank and one < other
  end)
  return names
end

--- The arguments of a call in one line, cut to `width` characters.
---@param input table<string, any>
---@param width integer
---@return string
function M.summary(input, width)
  local parts = {}
  for _, name in ipairs(argument_names(input)) do
    parts[#parts + 1] = M.escape(name) .. "=" .. M.escape(vim.json.encode(input[name]))
  end
  local line = table.concat(parts, " ")
  return vim.fn.strchars(line) > width and vim.fn.strcharpart(line, 0, width - 1) .. "…" or line
end

--- The arguments of a call, whole, as lines.
---@param input table<string, any>
---@return string[]
function M.arguments(input)
  local shown = {}
  for _, name in ipairs(argument_names(input)) do
    local lines = M.lines(plain(input[name]))
    if #lines == 1 then
      shown[#shown + 1] = ("%s: %s"):format(M.escape(name), lines[1])
    else
      shown[#shown + 1] = M.escape(name) .. ":"
      vim.list_extend(shown, vim.tbl_map(function(line)
        return "  " .. line
      end, lines))
    end
  end
  return shown
end

--- The text of a message's content; of other blocks where they lead to, or their type.
---@param content sidecar.Content
---@return string
function M.of_content(content)
  if type(content) == "string" then
    return content
  end
  return table.concat(vim.tbl_map(function(block)
    return block.text or ("[%s]"):format(block.uri or block.type)
  end, content), "\n")
end

--- What a Lua error says, without the place in the code.
---@param failure any
---@return string
function M.of_error(failure)
  return (tostring(failure):gsub("^.-%.lua:%d+: ", ""))
end

--- A span of time as a person says it.
---@param milliseconds number
---@return string
function M.duration(milliseconds)
  if milliseconds < 1000 then
    return ("%d ms"):format(milliseconds)
  end
  return ("%.1f s"):format(milliseconds / 1000)
end

return M
