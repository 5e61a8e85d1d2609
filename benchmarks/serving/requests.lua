-- Sends the bodies of a file in turn: wrk -s requests.lua URL -- FILE PREFIX PAUSE
--
-- FILE contains each body after a line with its size. In every body, 24 times @ stand for an id that no other
-- request has: PREFIX, which has 8 characters, and a counter. If PAUSE is not 0, each connection waits for 0.5 to 1.5 times as
-- many milliseconds before a request.

local PLACEHOLDER = string.rep("@", 24)
local parts = {}
local counter = 0
local prefix

function init(arguments)
  prefix = arguments[2]
  local pause = tonumber(arguments[3])
  if pause > 0 then
    function delay() return math.random(math.floor(pause / 2), math.floor(3 * pause / 2)) end
  end
  local file = assert(io.open(arguments[1], "rb"))
  while true do
    local size = file:read("*l")
    if not size then break end
    local request = wrk.format("POST", nil, nil, file:read(tonumber(size)))
    local first, last = request:find(PLACEHOLDER, 1, true)
    if first then
      parts[#parts + 1] = {request:sub(1, first - 1), request:sub(last + 1)}
    else
      parts[#parts + 1] = request
    end
  end
  file:close()
end

function request()
  counter = counter + 1
  local part = parts[counter % #parts + 1]
  if type(part) == "string" then return part end
  return part[1] .. prefix .. string.format("%016d", counter) .. part[2]
end
