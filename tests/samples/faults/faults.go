// Each line of input makes faults in Go's code, beside signals that come while C code runs, and prints what
// was caught. With an argument, C code faults at the end, which Go's run time tells of.
package main

/*
#include <stdlib.h>
#include <string.h>

static __attribute__((noinline)) long add_up(const int *values, int count)
{
	long sum = 0;
	for (int i = 0; i < count; i++)
		sum += values[i];
	return sum;
}

static int compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static __attribute__((noinline)) long sort_some(int count)
{
	int *values = malloc((size_t)count * sizeof *values);
	for (int i = 0; i < count; i++)
		values[i] = (i * 7919) % 1000;
	qsort(values, (size_t)count, sizeof *values, compare);
	long sum = add_up(values, count);
	free(values);
	return sum;
}

static __attribute__((noinline)) int fault(int *at)
{
	return *at;
}

extern int back(int);
static __attribute__((noinline)) int through(int n)
{
	return back(n) + 1;
}
*/
import "C"

import (
	"bufio"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
)

type node struct {
	next  *node
	value int
}

//go:noinline
func follow(n *node) int { return n.next.value }

//go:noinline
func divide(a, b int) int { return a / b }

//export back
func back(n C.int) C.int {
	return C.int(follow(&node{nil, int(n)}))
}

func caught(call func()) (count int64) {
	defer func() {
		if recover() != nil {
			count = 1
		}
	}()
	call()
	return 0
}

func batch() (int64, int64) {
	var count, sum int64
	var group sync.WaitGroup
	for worker := 0; worker < 4; worker++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for i := 0; i < 50; i++ {
				atomic.AddInt64(&count, caught(func() { follow(&node{}) }))
				atomic.AddInt64(&count, caught(func() { divide(i, i-i) }))
				atomic.AddInt64(&count, caught(func() { C.through(1) }))
				atomic.AddInt64(&sum, int64(C.sort_some(1000)))
			}
		}()
	}
	group.Wait()
	return count, sum
}

func main() {
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		count, sum := batch()
		fmt.Println("caught", count, "sum", sum)
	}
	if len(os.Args) > 1 {
		C.fault(nil)
	}
	os.Exit(3)
}
