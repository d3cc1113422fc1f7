-- The story in Neovim's own client: open, hint, code action, progress, edit applied, refined, accepted;
-- then rejected; then reverted. STORY names a JSON file with the cast; what happened goes to its "out".
-- Written for Neovim 0.7, which has no inlay hints of its own: they are asked for by a plain request.

local story = vim.fn.json_decode(table.concat(vim.fn.readfile(os.getenv("STORY")), "\n"))
local log = { progress = {}, asked = {}, hints = {}, titles = {}, texts = {}, answers = {} }
local answers = story.answers
local patience_ms = story.patience_ms
local answering = story.signals == nil

local function finish(failure)
  log.failure = failure
  vim.fn.writefile({ vim.fn.json_encode(log) }, story.out)
  vim.cmd("qall!")
end

local function check(condition, words)
  if not condition then
    error(words, 2)
  end
end

local function buffer_text()
  return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), "\n")
end

local function start()
  local capabilities = vim.lsp.protocol.make_client_capabilities()
  return vim.lsp.start_client({
    cmd = story.cmd,
    root_dir = story.root,
    capabilities = capabilities,
    init_options = { settings = story.settings, trusted = true },
    handlers = {
      ["window/showMessageRequest"] = function(_, params)
        table.insert(log.asked, params.message)
        local title = answering and table.remove(answers, 1) or nil
        return title and { title = title } or vim.NIL
      end,
      ["window/showMessage"] = function(_, params)
        table.insert(log.asked, params.message)
      end,
      ["$/progress"] = function(_, params)
        table.insert(log.progress, params.value.kind .. " " .. (params.value.message or params.value.title or ""))
      end,
      ["evokernel/status"] = function(_, params)
        log.status = params
      end,
      ["window/showDocument"] = function()
        return { success = true }
      end,
    },
  })
end

local function request(client, method, params)
  local answer, failure = client.request_sync(method, params, patience_ms, 0)
  check(answer and not answer.err, method .. ": " .. vim.inspect(failure or (answer and answer.err)))
  return answer.result
end

local function document()
  return { uri = vim.uri_from_bufnr(0) }
end

local function hints(client)
  local last = vim.api.nvim_buf_line_count(0)
  local range = { start = { line = 0, character = 0 }, ["end"] = { line = last, character = 0 } }
  return request(client, "textDocument/inlayHint", { textDocument = document(), range = range }) or {}
end

local function wait(words, condition)
  check(vim.wait(patience_ms, condition, 50), words .. " did not happen in time")
end

local function line_of(words)
  for number, line in ipairs(vim.api.nvim_buf_get_lines(0, 0, -1, false)) do
    if line:find(words, 1, true) then
      return number - 1
    end
  end
  error("no line holds " .. words)
end

local function action(client, words, title)
  local line = line_of(words)
  local range = { start = { line = line, character = 0 }, ["end"] = { line = line, character = 0 } }
  local params = { textDocument = document(), range = range, context = { diagnostics = {} } }
  for _, found in ipairs(request(client, "textDocument/codeAction", params)) do
    if found.title:find(title, 1, true) == 1 then
      table.insert(log.titles, found.title)
      return found.command and found or request(client, "codeAction/resolve", found)
    end
  end
  error("no action " .. title .. " on the line of " .. words)
end

-- Runs an action's command; the answer comes while edits and questions are served.
local function run(client, chosen)
  local answer
  client.request("workspace/executeCommand", chosen.command, function(failure, result)
    answer = result or { status = "error", message = vim.inspect(failure) }
  end, 0)
  wait(chosen.title, function() return answer ~= nil end)
  table.insert(log.answers, answer)
  return answer
end

local function tell()
  vim.cmd("edit " .. vim.fn.fnameescape(story.file))
  vim.bo.filetype = "python"
  local id = start()
  check(id, "the server did not start")
  vim.lsp.buf_attach_client(0, id)
  local client
  wait("initialize", function()
    client = vim.lsp.get_client_by_id(id)
    return client ~= nil and client.initialized
  end)
  log.encoding = client.offset_encoding
  log.version = vim.fn.execute("version"):match("NVIM v([%d.]+)")

  wait("hints", function()
    (vim.uv or vim.loop).sleep(50) -- an answer wakes vim.wait, which would ask again at once
    return #hints(client) >= #story.places
  end)
  for _, hint in ipairs(hints(client)) do
    table.insert(log.hints, hint.label)
  end

  for number, place in ipairs(story.places) do
    local before = #log.asked
    local answer = run(client, action(client, place, "Generate NPU kernel"))
    check(answer.status == "ready", "generate: " .. answer.message)
    check(not buffer_text():find(".run(" .. place:match("%((%w+)") .. ")", 1, true), "nothing is edited yet")
    table.remove(log.answers)
    answer = run(client, action(client, place, "Accept the "))
    check(answer.status == "applied", "accept: " .. answer.message)
    local call = answer.name .. ".run("
    check(buffer_text():find(call, 1, true), "the call is not in the buffer")
    if story.signals then
      -- the test tells when an older, slower package has come back
      wait("a signal", function() return vim.fn.filereadable(story.signals .. "/" .. number) == 1 end)
      before, answering = #log.asked, true
      local queued = run(client, action(client, call, "Refine"))
      check(queued.status == "queued", "refine: " .. queued.message)
    end
    wait("an offer", function() return #log.asked > before end)
    vim.wait(story.settle_ms)
    answering = story.signals == nil
  end
  table.insert(log.texts, buffer_text())

  local first = log.answers[1].name
  local answer = run(client, action(client, first .. ".run(", "Revert kernel"))
  check(answer.status == "reverted", "revert: " .. answer.message)
  table.insert(log.texts, buffer_text())
  vim.lsp.stop_client(id)
  wait("stop", function() return client.is_stopped() end)
end

local fine, failure = pcall(tell)
finish(not fine and tostring(failure) or nil)
