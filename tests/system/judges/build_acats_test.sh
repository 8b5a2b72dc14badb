#!/bin/sh
# Builds one test of the Ada conformity suite in the current folder, as gcc's run_all.sh does:
#   build_acats_test.sh SUPPORT NAME FLAGS FILE... PROGRAM
set -eu
support=$1 name=$2 flags=$3
shift 3
while [ $# -gt 1 ]; do
    gnatchop -c -w -q "$1" . # writes the units of one file that are not there yet, and complains of others
    shift
done
# gcc leaves out these files, which each stand for a unit that another file declares.
case $name in
ca1020e) rm -f ca1020e_func1.adb ca1020e_func2.adb ca1020e_proc1.adb ca1020e_proc2.adb ;;
ca14028) rm -f ca14028_func2.ads ca14028_func3.ads ca14028_proc1.ads ca14028_proc3.ads ;;
esac
# shellcheck disable=SC2012 # names of tests are words
main=$(ls "$name"?.adb "$name"*m.adb "$name".adb 2>/dev/null | tail -n 1)
objects=
case $name in
cxb30*) objects=$(ls "$support"/cxb30*.o) ;;
esac
# shellcheck disable=SC2086 # lists of words
gnatmake -q -gnatws -O2 -g -gnat95 $flags -I"$support" "$main" -o "$1" -largs $objects
