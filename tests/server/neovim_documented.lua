-- Neovim with nothing but the configuration that docs/server.md prints: does the server attach to a Python
-- file, and does what it knows arrive by Neovim's own means? What was seen goes to the file that OUT names.

local seen = {}

local function clients()
  local get = vim.lsp.get_clients or vim.lsp.get_active_clients
  return vim.tbl_filter(function(client)
    return vim.lsp.buf_is_attached(0, client.id)
  end, get())
end

local function wait(condition)
  return vim.wait(30000, condition, 50)
end

seen.attached = wait(function() return #clients() == 1 and clients()[1].initialized ~= false end)
if seen.attached then
  seen.budget = clients()[1].config.init_options.settings.budget
  wait(function() return #vim.diagnostic.get(0) > 0 end)
  seen.diagnostics = vim.tbl_map(function(item) return item.message end, vim.diagnostic.get(0))
  local line = vim.fn.search("torch.softmax", "n") - 1
  local place = { line = line, character = 0 }
  local params = {
    textDocument = { uri = vim.uri_from_bufnr(0) },
    range = { start = place, ["end"] = place },
    context = { diagnostics = {} },
  }
  seen.titles = {}
  wait(function()
    local answers = vim.lsp.buf_request_sync(0, "textDocument/codeAction", params, 5000) or {}
    for _, answer in pairs(answers) do
      for _, action in ipairs(answer.result or {}) do
        table.insert(seen.titles, action.title)
      end
    end
    return #seen.titles > 0
  end)
end
vim.fn.writefile({ vim.fn.json_encode(seen) }, os.getenv("OUT"))
vim.cmd("qall!")
