# perl: hashes, regular expressions, closures, sort, sprintf, local, die and eval, tie, a child.
# judge.pl SIZE; ends with 3.
use strict;
use warnings;
$SIG{ALRM} = sub { die "alarm\n" };
my %words;
$words{"w" . $_ * 7919 % 101}++ for 0 .. $ARGV[0] - 1;
print join(" ", map { "$_=$words{$_}" } sort keys %words), "\n";
sub fib { my $n = shift; return $n < 2 ? $n : fib($n - 1) + fib($n - 2) }
print fib(13), " ", sprintf("%.3f %5s|%x", 22 / 7, "ab", 48879), "\n";
my $text = join " ", sort keys %words;
(my $other = $text) =~ s/w(\d)(\d?)/<$2$1>/g;
print length($other), " ", unpack("%32C*", $other), "\n";
eval { kill ALRM => $$; select undef, undef, undef, 5; 1 } or print "caught $@";
{ package Counted; sub TIESCALAR { bless [0] } sub FETCH { $_[0][0]++ } }
tie my $counted, "Counted";
print "$counted $counted\n";
my $deep; $deep = sub { $_[0] ? $deep->($_[0] - 1) + 1 : 0 };
{ no warnings "recursion"; print $deep->(3000), "\n"; }
$| = 1;
my $child = fork // die;
exit 5 unless $child;
waitpid $child, 0;
print $? >> 8, "\n";
exit 3;
