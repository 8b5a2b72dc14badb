class Shape { int side; int area() { side * side } }
def shapes = (1..200).collect { new Shape(side: it) }
println shapes.findAll { it.area() % 3 == 1 }.collect { it.area() }.sum()
println shapes.groupBy { it.side % 7 }.collectEntries { k, v -> [k, v.size()] }.sort()
def words = 'the quick brown fox jumps over the lazy dog the end'.split(' ')
println words.inject([:].withDefault { 0 }) { m, w -> m[w] += 1; m }.sort { a, b -> b.value <=> a.value ?: a.key <=> b.key }
try { [1, 2].get(5) } catch (IndexOutOfBoundsException e) { println 'out of bounds' }
