-- wrk's side of a closed-loop run: every request gets an id of its own, every reply is looked at.
-- Arguments: a file of requests separated by NUL, the placeholder of the id, a seed of 12
-- hexadecimal digits that no other run has, what a good reply holds, what no good reply holds.

local threads = {}

function setup(thread)
  table.insert(threads, thread)
end

local templates = {}
local seed_groups, expected, refusal
local number = 0

failures = 0
first_failure = ""

function init(arguments)
  local file = assert(io.open(arguments[1], "rb"))
  local content = file:read("*a")
  file:close()
  local placeholder, seed = arguments[2], arguments[3]
  for request in content:gmatch("[^%z]+") do
    local pieces, from = {}, 1
    while true do
      local first, last = request:find(placeholder, from, true)
      if not first then break end
      pieces[#pieces + 1] = request:sub(from, first - 1)
      from = last + 1
    end
    pieces[#pieces + 1] = request:sub(from)
    templates[#templates + 1] = pieces
  end
  math.randomseed(tonumber(seed, 16) % 2147483647)
  seed_groups = seed:sub(1, 4) .. "-" .. seed:sub(5, 8) .. "-" .. seed:sub(9, 12)
  expected, refusal = arguments[4], arguments[5]
end

-- The first group is random, as clients' ids are: ids in order would flatter an index.
-- Seed and number make the id one that was never sent before.
function request()
  number = number + 1
  local pieces = templates[(number - 1) % #templates + 1]
  if #pieces == 1 then return pieces[1] end
  local id = string.format("%08x-%s-%012x", math.random(0, 4294967295), seed_groups, number)
  return table.concat(pieces, id)
end

function response(status, headers, body)
  if status == 200 and body:find(expected, 1, true) and not body:find(refusal, 1, true) then
    return
  end
  failures = failures + 1
  if first_failure == "" then
    first_failure = string.format("HTTP %d: %s", status, body:sub(1, 300))
  end
end

function done(summary, latency, requests)
  local failed, shown = 0, ""
  for _, thread in ipairs(threads) do
    failed = failed + thread:get("failures")
    if shown == "" then shown = thread:get("first_failure") end
  end
  local errors = summary.errors
  io.write(string.format(
    'bench-result {"requests": %d, "microseconds": %d, "p50": %d, "p99": %d, "longest": %d, ' ..
      '"connect": %d, "read": %d, "write": %d, "timeout": %d, "failures": %d, "shown": "%s"}\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99), latency.max,
    errors.connect, errors.read, errors.write, errors.timeout, failed,
    (shown:gsub('[^%w%p ]', " "):gsub('["\\]', "'"))
  ))
end
