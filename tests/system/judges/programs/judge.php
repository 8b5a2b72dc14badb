<?php
// Zend's engine: arrays, generators, JSON, PCRE, exceptions, dates, destructors, fibers. judge.php SIZE;
// ends with 3.
function fib($n) { return $n < 2 ? $n : fib($n - 1) + fib($n - 2); }
function squares($n) { for ($i = 0; $i < $n; $i++) yield $i => $i * $i; }
class Thing {
    function __get($name) { return "got $name"; }
    function __destruct() { echo "gone\n"; }
}
$words = [];
for ($i = 0; $i < (int)$argv[1]; $i++) {
    $word = 'w' . $i * 7919 % 101;
    $words[$word] = ($words[$word] ?? 0) + 1;
}
ksort($words);
echo json_encode($words), "\n", fib(15), "\n", array_sum(iterator_to_array(squares(500))), "\n";
echo md5(serialize($words)), ' ', preg_replace('/w(\d)/', '<$1>', implode(' ', array_keys($words))), "\n";
try {
    intdiv(1, 0);
} catch (DivisionByZeroError $error) {
    echo get_class($error), "\n";
}
$day = new DateTime('2026-01-31', new DateTimeZone('UTC'));
echo $day->modify('+1 month')->format('c'), "\n";
$thing = new Thing;
echo $thing->x, "\n";
$thing = null;
$fiber = new Fiber(function ($x) { $y = Fiber::suspend($x * 2); echo "resumed $y\n"; });
echo $fiber->start(21), "\n";
$fiber->resume('now');
exit(3);
