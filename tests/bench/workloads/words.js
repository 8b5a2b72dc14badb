// Calls, strings, tables, a regular expression and JSON.
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
var words = {}, text = "";
for (var i = 0; i < 3000; i++) { var w = "w" + (i * 7919 % 500); words[w] = (words[w] || 0) + 1; text += w + " "; }
var out = Object.keys(words).sort().map(function (k) { return k + ":" + words[k]; }).join(",");
print(fib(18), out.length, text.replace(/w1/g, "x").length, JSON.stringify(words).length);
