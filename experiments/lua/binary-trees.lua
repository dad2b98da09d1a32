-- Binary trees: builds and drops many small trees while one large tree stays alive, so that the garbage collector has
-- much to free and much to walk. After Hans Boehm's GCBench; written for Widthwise.

local function bottom_up(depth)
  if depth == 0 then return {} end
  depth = depth - 1
  return { bottom_up(depth), bottom_up(depth) }
end

local function count(tree)
  local left = tree[1]
  if left then return 1 + count(left) + count(tree[2]) end
  return 1
end

local deepest = tonumber(arg[1]) or 17
local shallowest = 4

local long_lived = bottom_up(deepest)

for depth = shallowest, deepest - 4, 4 do
  local trees = 1 << (deepest - depth)
  local nodes = 0
  for _ = 1, trees do nodes = nodes + count(bottom_up(depth)) end
  print(string.format("%d trees of depth %d: %d nodes", trees, depth, nodes))
end

print(string.format("long lived tree of depth %d: %d nodes", deepest, count(long_lived)))
