-- Review in Neovim with nothing but the configuration that docs/editors.md prints: a kernel is generated, read,
-- accepted, undone, accepted again, rejected with a reason, put off, and wanted never. Everything is chosen from
-- vim.lsp.buf.code_action(), as a person does. What was seen goes to the file that OUT names.

local places = { "torch.softmax(x", "torch.softmax(y", "torch.softmax(z" }
local reason = "Hard to read"
local patience_ms = 30000
local seen = { steps = {}, messages = {}, questions = {} }
local wanted, offered
local model = vim.api.nvim_get_current_buf()

local function finish(failure)
  seen.failure = failure
  vim.fn.writefile({ vim.fn.json_encode(seen) }, os.getenv("OUT"))
  vim.cmd("qall!")
end

local function wait(words, condition)
  if not vim.wait(patience_ms, condition, 50) then
    error(words .. " did not happen in time; offered: " .. vim.inspect(offered), 2)
  end
end

-- The number of a person's answer to a question of the server's.
local function answered(question, answers)
  table.insert(seen.questions, { asked = question, answers = answers })
  for number, title in ipairs(answers) do
    if title == reason then
      return number
    end
  end
end

-- A person's choice of the actions of a line, or of the answers to a question.
vim.ui.select = function(items, options, chosen)
  local format = options.format_item or tostring
  local titles = vim.tbl_map(format, items)
  if options.kind ~= "codeaction" then
    local number = answered(options.prompt, titles)
    return chosen(items[number], number)
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

-- Neovim 0.7 asks in this way, and waits for the answer.
vim.fn.inputlist = function(lines)
  local titles = {}
  for _, line in ipairs(lines) do
    table.insert(titles, line:match("^%d+%. (.*)$"))
  end
  return answered(lines[1], titles) or 0
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
    vim.lsp.buf.code_action(vim.fn.has("nvim-0.8") == 1 and { context = context } or context)
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
  seen.steps[name] = { text = text(), packages = vim.fn.glob("evokernel_kernels/softmax_*", true, true) }
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

local function taken_back(call)
  go_to(call)
  vim.cmd("silent undo")
  wait("the undo", function() return not text():find(call, 1, true) end)
end

local function tell()
  local first, second, third = unpack(places)
  local call = ".run("
  choose(first, "Generate NPU kernel")
  wait("a ready kernel", function() return offers(first, "Review the ") end)
  step("ready")
  choose(first, "Review the ")
  wait("the page", page)
  seen.page = page()
  vim.cmd("silent! only")

  choose(first, "Accept the ")
  wait("the call", function() return text():find(call, 1, true) end)
  wait("a way back", function() return offers(call, "Revert kernel") end)
  step("accepted")
  taken_back(call)
  wait("the kernel waits again", function() return offers(first, "Accept the ") end)
  step("undone")
  choose(first, "Accept the ")
  wait("the call again", function() return text():find(call, 1, true) end)
  wait("a way back", function() return offers(call, "Revert kernel") end)
  step("accepted again")

  choose(second, "Generate NPU kernel")
  choose(second, "Snooze the ")
  choose(second, "Reject the ")
  wait("the question", function() return #seen.questions > 0 end)
  wait("no kernel waits", function() return not offers(second, "Accept the ") end)
  seen.rejected = titles(second)

  choose(third, "Generate NPU kernel")
  wait("a kernel of the third", function() return offers(third, "Accept the ") end)
  choose(third, "Never offer a kernel")
  wait("nothing is offered", function() return not offers(third, "Accept the ") end)
  seen.never = titles(third)
  choose(third, "Offer kernels again", { "refactor.rewrite" })
  wait("a kernel again", function() return offers(third, "Accept the ") end)
  step("offered again")
end

local fine, failure = pcall(tell)
finish(not fine and tostring(failure) or nil)
