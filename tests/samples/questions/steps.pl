# Does another amount of work for each line of its input.
$| = 1;
sub f { my $n = shift; $n < 2 ? 1 : f($n - 1) + f($n - 2) }
f(8); print "1\n"; <STDIN>;
f(25); print "2\n"; <STDIN>;
f(9); print "3\n"; <STDIN>;
f(5)
