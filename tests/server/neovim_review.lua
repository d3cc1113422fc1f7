-- Review in Neovim with nothing but the configuration that docs/editors.md prints: a kernel is generated, read,
-- accepted, undone, accepted again, rejected with a reason, put off, and wanted never. Everything is chosen from
-- vim.lsp.buf.code_action(), as a person does. STORY names a JSON file with the cast; what was seen goes to "out".

local story = vim.fn.json_decode(table.concat(vim.fn.readfile(os.getenv("STORY")), "\n"))
local seen = { steps = {}, pages = {}, messages = {}, questions = {} }
local wanted, offered
local model = vim.api.nvim_get_current_buf()

local function finish(failure)
  seen.failure = failure
  vim.fn.writefile({ vim.fn.json_encode(seen) }, story.out)
  vim.cmd("qall!")
end

local function wait(words, condition)
  if not vim.wait(story.patience_ms, condition, 50) then
    error(words .. " did not happen in time; offered: " .. vim.inspect(offered), 2)
  end
end

-- A person's choice: of the actions of a line, or of the answers to a question of the server's.
vim.ui.select = function(items, options, chosen)
  local format = options.format_item or tostring
  local titles = vim.tbl_map(format, items)
  if options.kind ~= "codeaction" then
    table.insert(seen.questions, { asked = options.prompt, answers = titles })
    for number, title in ipairs(titles) do
      if title == story.reason then
        return chosen(items[number], number)
      end
    end
    return chosen(nil, nil)
  end
  offered = titles
  for number, title in ipairs(titles) do
    if wanted and title:find(wanted, 1, true) == 1 then
      wanted = nil
      return chosen(items[number], number)
    end
  end
  chosen(nil, nil)
end

local message = vim.lsp.handlers["window/showMessage"]
vim.lsp.handlers["window/showMessage"] = function(failure, params, ...)
  table.insert(seen.messages, params.message)
  return message(failure, params, ...)
end

local function text()
  return table.concat(vim.api.nvim_buf_get_lines(model, 0, -1, false), "\n")
end

local function go_to(words)
  vim.api.nvim_set_current_buf(model)
  for number, line in ipairs(vim.api.nvim_buf_get_lines(model, 0, -1, false)) do
    if line:find(words, 1, true) then
      return vim.api.nvim_win_set_cursor(0, { number, 0 })
    end
  end
  error("no line holds " .. words)
end

-- Asks for the actions of the line with some words until one begins as wanted, and takes it.
local function choose(words, title, only)
  go_to(words)
  wanted = title
  local context = { diagnostics = {}, only = only }
  wait(title, function()
    vim.lsp.buf.code_action({ context = context })
    vim.wait(200, function() return wanted == nil end, 10)
    return wanted == nil
  end)
end

local function titles(words)
  go_to(words)
  offered, wanted = nil, nil
  vim.lsp.buf.code_action({ context = { diagnostics = {} } })
  vim.wait(200, function() return offered ~= nil end, 10)
  return offered or {}
end

local function offers(words, title)
  return vim.tbl_filter(function(found) return found:find(title, 1, true) == 1 end, titles(words))[1] ~= nil
end

local function step(name)
  table.insert(seen.steps, { name = name, text = text(), packages = vim.fn.glob(story.packages, true, true) })
end

local function page()
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    local name = vim.api.nvim_buf_get_name(buffer)
    if buffer ~= model and name:match("%.md$") then
      return { name = name, text = table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), "\n") }
    end
  end
  for _, said in ipairs(seen.messages) do -- a client without window/showDocument is told where it is
    local path = said:match("the review is in (.+%.md)$")
    if path then
      return { name = path, text = table.concat(vim.fn.readfile(path), "\n") }
    end
  end
end

local function tell()
  local first, second, third = unpack(story.places)
  choose(first, "Generate NPU kernel")
  wait("ready", function() return offers(first, "Review the ") end)
  step("ready")
  choose(first, "Review the ")
  wait("the page", page)
  seen.page = page()
  vim.cmd("silent! only")
  step("reviewed")

  local call = ".run("
  choose(first, "Accept the ")
  wait("the call", function() return text():find(call, 1, true) end)
  wait("a way back", function() return offers(call, "Revert kernel") end)
  step("accepted")
  go_to(call)
  vim.cmd("silent undo")
  wait("the undo", function() return not text():find(call, 1, true) end)
  wait("ready after the undo", function() return offers(first, "Generate NPU kernel") or offers(first, "Accept the ") end)
  step("undone")
  seen.after_undo = offered
end

local fine, failure = pcall(tell)
finish(not fine and tostring(failure) or nil)
