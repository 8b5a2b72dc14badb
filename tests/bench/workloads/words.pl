# Interpreter work for budget.py: strings, hashes, recursion. $ARGV[0]: rounds.
use strict;
sub fibonacci { my $n = shift; return $n < 2 ? $n : fibonacci($n - 1) + fibonacci($n - 2) }
my %sums;
for my $round (1 .. $ARGV[0]) {
    for my $i (1 .. 500000) {
        my $key = join("-", $i % 1000, substr("abcdefgh", $i % 7, 2));
        $sums{$key} += length($key) * sqrt($i);
    }
    fibonacci(21);
}
print scalar(keys %sums), "\n";
