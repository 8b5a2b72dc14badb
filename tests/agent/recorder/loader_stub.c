/* The gate of hooks/ leads here in tests that link no lifecycle/; none of them reaches it. */
#include "agent/lifecycle/exec.h"
#include "agent/lifecycle/modules.h"

#include <stdlib.h>

void sj_modules_on_loader_event(void)
{
    abort();
}

void sj_exec_try(const char *path, char *const *arguments, char *const *environment)
{
    (void)path;
    (void)arguments;
    (void)environment;
}

void sj_modules_on_initialisation(void)
{
    abort();
}
