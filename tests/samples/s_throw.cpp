// C++ exceptions: through several frames, rethrown, through frames with destructors, and out of a
// recursion into an outer activation of the same function.
#include "truth.h"

#include <exception>
#include <stdexcept>

namespace
{
struct Truth {
    explicit Truth(const char *name) : exceptions(std::uncaught_exceptions())
    {
        truth_enter(name);
    }
    ~Truth()
    {
        if (std::uncaught_exceptions() > exceptions) {
            truth_unwind(truth_depth() - 1);
        } else {
            truth_leave();
        }
    }
    int exceptions;
};
} // namespace

#define TRUTH Truth truth_of_call(__func__)

extern "C" {

SAMPLE int s_after(int n)
{
    TRUTH;
    return n + 1;
}

SAMPLE void s_throw(int n)
{
    TRUTH;
    if (n == 0) {
        throw std::runtime_error("bottom");
    }
    s_throw(n - 1);
    s_after(n);
}

SAMPLE int s_catch(int n)
{
    TRUTH;
    try {
        s_throw(n);
    } catch (const std::runtime_error &) {
        return s_after(n);
    }
    return 0;
}

SAMPLE void s_rethrow(int n)
{
    TRUTH;
    try {
        s_throw(n);
    } catch (...) {
        s_after(n);
        throw;
    }
}

SAMPLE int s_own_outer_frame(int n)
{
    TRUTH;
    if (n == 6) {
        throw 42;
    }
    if (n != 0) {
        return s_own_outer_frame(n + 1) + 1;
    }
    try {
        return s_own_outer_frame(1) + 1;
    } catch (int value) {
        return s_after(value);
    }
}

SAMPLE int s_all(int n)
{
    TRUTH;
    int sum = s_catch(n) + s_own_outer_frame(0);
    try {
        s_rethrow(n);
    } catch (const std::exception &) {
        sum += s_after(sum);
    }
    return sum;
}
}

int main()
{
    int sum = 0;
    for (int i = 0; i < 3; i++) {
        sum += s_all(i * 5);
    }
    return sum > 0 ? 0 : 1;
}
