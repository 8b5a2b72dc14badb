# fills_disk.sh FOLDER SOJOURN: records to its own disk (in a mount namespace) until the disk is full. Sends the
# rest when the disk has free space again. Each exit code stands for one failed expectation.
disk=$1 sojourn=$2
mount -t tmpfs -o size=32m none "$disk" || exit 99
"$sojourn" record -o "$disk/x.db" --wait 2s -- /usr/bin/perl -e '
    $| = 1; $x += $_ for 1..9; open(F, ">$ARGV[0]/fill"); 1 while syswrite(F, "x" x 65536); close F;
    for (1..300000) { $y{rand()} = rand }' "$disk" 2>record.txt
grep -q "waiting for $disk/x.db" record.txt || { cat record.txt; exit 1; }
grep -q 'has not accepted everything (.*full).*kept in .*/spool/' record.txt || { cat record.txt; exit 2; }
! grep -q '^  next ' record.txt || { cat record.txt; exit 4; }
rm "$disk/fill"
"$sojourn" flush || exit 3
"$sojourn" sql "SELECT state, stored_calls > 100000 FROM sessions" "$disk/x.db"
