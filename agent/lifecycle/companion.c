#include "agent/lifecycle/companion.h"

#include "agent/lifecycle/environment.h"

bool sj_companion_meet(char **arguments, char **environment, char *runtime, size_t runtime_bytes)
{
    (void)arguments;
    return sj_environment_take(environment, runtime, runtime_bytes);
}

void sj_companion_exec(const char *const **entries)
{
    *entries = NULL;
}

void sj_companion_part(void)
{
}
