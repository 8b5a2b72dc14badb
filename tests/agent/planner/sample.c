/* A program of code that is hard to hook: switches, computed gotos, direct, indirect and
 * conditional tail calls, tail calls to itself, loops at the entry, shared returns, cold paths,
 * calls at the entry, recursion, setjmp. Its results do not depend on the compiler. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEEP __attribute__((noinline, noclone))

typedef int (*operation)(int, int);

static volatile int sink;
static jmp_buf jump_place;

KEEP int empty_function(void)
{
    return 7;
}

KEEP int add(int a, int b)
{
    return a + b;
}

KEEP int multiply(int a, int b)
{
    return a * b;
}

static const operation operations[] = {add, multiply, add, multiply};

KEEP int tail_indirect(int which, int a, int b)
{
    return operations[which & 3](a + 1, b);
}

KEEP int tail_conditional(int a, int b)
{
    if (a > b) {
        return add(a, b);
    }
    if (a == b) {
        return multiply(a, b);
    }
    return a;
}

KEEP int count_down(int n, int sum)
{
    return n == 0 ? sum : count_down(n - 1, sum + n);
}

KEEP size_t head_loop(const char *text)
{
    size_t n = 0;
    do {
        n += (unsigned char)*text++;
    } while (*text != 0);
    return n;
}

KEEP int big_switch(int x, int y)
{
    switch (x) {
    case 0:
        return add(y, 1);
    case 1:
        sink = y;
        return y * 3;
    case 2:
        return multiply(y, y);
    case 3:
        return y - empty_function();
    case 4:
        return y ^ 0x55;
    case 5:
        sink += y;
        return sink;
    case 6:
        return count_down(y & 15, 0);
    case 7:
        return y << 2;
    case 8:
        return tail_conditional(y, 9);
    default:
        return -1;
    }
}

KEEP int interpret(const unsigned char *code, int value)
{
    static const void *const labels[] = {&&op_end, &&op_add, &&op_double, &&op_call, &&op_sub};
    goto *labels[*code++];
op_add:
    value += *code++;
    goto *labels[*code++];
op_double:
    value *= 2;
    goto *labels[*code++];
op_call:
    value = add(value, empty_function());
    goto *labels[*code++];
op_sub:
    value -= 5;
    goto *labels[*code++];
op_end:
    return value;
}

KEEP void fail_rarely(int x)
{
    if (__builtin_expect(x == 12345, 0)) {
        fprintf(stderr, "never %d\n", x);
        abort();
    }
    sink = x;
}

KEEP int fibonacci(int n)
{
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

KEEP void jump_out(int depth)
{
    if (depth == 0) {
        longjmp(jump_place, 3);
    }
    jump_out(depth - 1);
    sink = depth;
}

KEEP double many_arguments(int a, double b, long c, float d, int e, int f, int g, long h, double i)
{
    return a + b + (double)c + d + e + f + g + (double)h + i;
}

struct handler {
    long base;
    int (*handle)(long, long *);
};

KEEP int handle(long x, long *sum)
{
    *sum += x;
    return (int)x;
}

/* A sum without a table, then a jump through a register that was loaded after it. */
KEEP int tail_behind_sum(const struct handler *handler, long x, long *sum)
{
    return handler->handle(x + handler->base, sum);
}

/* A return after padding, which a jump over the frame reaches. */
KEEP int early_return(const int *numbers, int count)
{
    int found = 0;
    if (count <= 0) {
        return 0;
    }
    for (int i = 0; i < count; i++) {
        found += handle(numbers[i], &(long){0}) > 3;
        sink = found;
    }
    return found;
}

static int compare(const void *left, const void *right)
{
    const int a = *(const int *)left;
    const int b = *(const int *)right;
    return (a > b) - (a < b);
}

int main(void)
{
    static const unsigned char program[] = {1, 4, 2, 3, 4, 2, 1, 9, 0};
    long total = 0;
    for (int i = 0; i < 200; i++) {
        total += big_switch(i % 10, i) + tail_indirect(i, i, 3) + tail_conditional(i, 100);
        total += interpret(program, i) + count_down(i, 0) + empty_function();
        fail_rarely(i);
    }
    int numbers[64];
    for (int i = 0; i < 64; i++) {
        numbers[i] = (i * 37) % 64;
    }
    qsort(numbers, 64, sizeof(numbers[0]), compare);
    printf("%ld %d %zu %d %.2f\n", total, fibonacci(15), head_loop("sojourn"), numbers[17],
           many_arguments(1, 2.5, 3, 4.25f, 5, 6, 7, 8, 9.5));
    long sum = 0;
    const struct handler handler = {5, handle};
    for (int i = 0; i < 50; i++) {
        total += tail_behind_sum(&handler, i, &sum) + early_return(numbers, i % 3);
    }
    printf("%ld %ld\n", total, sum);
    const int jumped = setjmp(jump_place);
    if (jumped == 0) {
        jump_out(5);
    }
    printf("jumped %d\n", jumped);
    return 0;
}
