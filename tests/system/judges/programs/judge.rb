# MRI: hashes, fibers, threads, a stack that overflows, throw and catch, collections, a child.
# judge.rb SIZE; ends with 3.
require 'digest'
require 'json'

def fib(n) = n < 2 ? n : fib(n - 1) + fib(n - 2)
def deep = deep + 1

words = Hash.new(0)
ARGV[0].to_i.times { |i| words["w#{i * 7919 % 101}"] += 1 }
puts JSON.generate(words.sort.to_h), fib(15), Digest::SHA256.hexdigest(words.to_s)
fiber = Fiber.new { |x| y = Fiber.yield(x * 2); "resumed #{y}" }
puts fiber.resume(21), fiber.resume(:now)
puts 4.times.map { |t| Thread.new { (1..200).sum { |i| i * t } } }.map(&:value).sum
begin
  deep
rescue SystemStackError => error
  puts error.class
end
puts catch(:done) { 10.times { |i| throw :done, i if i == 7 } }
puts [3, 1, 2].sort.lazy.map { _1 * 2 }.to_a.inspect, 'aXb'.gsub(/X(\w)/) { $1.upcase }
GC.start
$stdout.flush
Process.wait(fork { exit!(5) })
puts $?.exitstatus
at_exit { puts 'bye' }
exit 3
