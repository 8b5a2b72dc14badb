/* The environment of a launched app: what the launcher put there for the agent. */
#ifndef SJ_AGENT_LIFECYCLE_ENVIRONMENT_H
#define SJ_AGENT_LIFECYCLE_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

/* sj_environment_value gives the value when `entry` is NAME=value, NULL when it is another's;
 * sj_environment_find the entry itself, NULL: there is none. */
char *sj_environment_value(char *entry, const char *name);
char *sj_environment_find(char **environment, const char *name);

/* sj_environment_take copies SOJOURN_RUNTIME to `runtime` and restores the environment as it was
 * before the launch, in place: SOJOURN_* disappear, LD_PRELOAD gets its earlier value and keeps its
 * place, or disappears. False, with nothing changed, when the app was not launched by us;
 * false, with the environment restored, when the directory's name does not fit. */
bool sj_environment_take(char **environment, char *runtime, size_t runtime_bytes);

#endif
