# Uses lists, caught errors and substitutions.
my %seen;
for my $i (1 .. 100) {
    my $text = join ',', map { $_ * $i % 7 } 1 .. 6;
    eval { die "odd\n" if $i % 3; $seen{$text}++; };
    $text =~ s/(\d)/<$1>/g;
}
print scalar(keys %seen);
