/* A module that calls the program's moment_wait while it is being loaded. With RESOLVING, it does
 * so after it is mapped and before it is initialised. Otherwise it does so in the first of its two
 * constructors. */
#include <stddef.h>

void moment_wait(void);
int moment_initialised(void);

static int initialised;

#ifdef RESOLVING
/* The loader calls the resolver of this function after it has bound all other symbols. */
static int one(void)
{
    return 1;
}

static int (*resolve(void))(void)
{
    moment_wait();
    return one;
}

int meant(void) __attribute__((ifunc("resolve"), visibility("hidden")));
static int (*const volatile reference)(void) = meant;

void _init(void);
void _init(void)
{
    initialised += 1 + reference();
}
#else
__attribute__((constructor(101))) static void first(void)
{
    moment_wait();
    initialised++;
}

__attribute__((constructor(102))) static void second(void)
{
    initialised++;
}
#endif

int moment_initialised(void)
{
    return initialised;
}
