# Each line of input makes stacks overflow, in Ruby's code and in its C code, and prints what was caught.
$stdout.sync = true

def endless(n) = endless(n + 1) + 1

def through_c(n) = [n].each { |each| through_c(each + 1) }

def caught(kind)
  yield
  0
rescue kind
  1
end

def batch
  count = caught(SystemStackError) { endless(0) }
  count += caught(SystemStackError) { through_c(0) }
  count += Thread.new { caught(SystemStackError) { endless(0) } }.value
  count += Fiber.new { caught(SystemStackError) { through_c(0) } }.resume
  count + caught(ZeroDivisionError) { 1 / (count - count) }
end

puts "caught #{batch}" while $stdin.gets
exit 3
