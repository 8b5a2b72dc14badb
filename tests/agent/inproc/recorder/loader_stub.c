/* The trampolines of core/ call these. Tests that do not link core/ never reach them. */
#include "agent/inproc/core/exec.h"
#include "agent/inproc/core/modules.h"

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
