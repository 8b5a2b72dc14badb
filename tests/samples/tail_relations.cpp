// Calls that end with a jump to another function, in the forms of real programs: a wrapper, a state
// machine, two functions that call each other, a call by a pointer, in a loop, and one that an
// exception leaves. tail_relations ROUNDS
#include <cstdio>
#include <cstdlib>

#define PART extern "C" __attribute__((noipa))

PART long tail_leaf(long value)
{
    volatile long sum = 0;
    for (long i = 0; i < value; i++) {
        sum = sum + i;
    }
    return sum;
}

PART long tail_outer(long value)
{
    return tail_leaf(value * 1000);
}

PART long tail_helper(long value)
{
    return value ^ 5; // changes the flags; address arithmetic would not
}

PART long tail_second(long value)
{
    return tail_outer(tail_helper(value)); // calls one function, then jumps to another
}

PART long state_c(long left);

PART long state_b(long left)
{
    return state_c(left - 1);
}

PART long state_a(long left)
{
    return left > 0 ? state_b(left - 1) : left;
}

PART long state_c(long left)
{
    return state_a(left - 1);
}

PART long machine_run(long rounds)
{
    return state_a(3 * rounds);
}

PART long is_odd(long value);

PART long is_even(long value)
{
    return value == 0 ? 1 : is_odd(value - 1);
}

PART long is_odd(long value)
{
    return value == 0 ? 0 : is_even(value - 1);
}

long (*volatile by_pointer)(long) = tail_helper;

PART long tail_by_pointer(long value)
{
    return by_pointer(value);
}

PART long tail_sibling(long value)
{
    return tail_helper(value);
}

PART long tail_throws(long value)
{
    if (value != 0) {
        throw value;
    }
    return value;
}

PART long tail_into_throw(long value)
{
    return tail_throws(value + 1);
}

PART long tail_catches(long value)
{
    try {
        return tail_into_throw(value);
    } catch (long thrown) {
        return thrown;
    }
}

int main(int count, char **arguments)
{
    const long rounds = count > 1 ? std::atol(arguments[1]) : 100;
    long sum = tail_second(3) + machine_run(rounds) + is_even(501) + tail_by_pointer(5);
    for (long i = 0; i < 50; i++) {
        sum += tail_sibling(i) + tail_helper(i);
    }
    sum += tail_catches(7);
    std::printf("%ld\n", sum);
    return 0;
}
