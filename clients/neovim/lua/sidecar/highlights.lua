--- The colours: links that a colour scheme or a configuration may replace.
local M = {}

local LINKS = {
  SidecarTool = "Special",
  SidecarToolAsking = "DiagnosticWarn",
  SidecarToolDone = "DiagnosticOk",
  SidecarToolFailed = "DiagnosticError",
  SidecarNote = "Comment",
  SidecarStatus = "DiagnosticInfo",
}

function M.define()
  for name, target in pairs(LINKS) do
    vim.api.nvim_set_hl(0, name, { link = target, default = true })
  end
end

return M
