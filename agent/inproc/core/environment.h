/* The environment of a launched program: what the launcher added for the agent. */
#ifndef SJ_AGENT_INPROC_CORE_ENVIRONMENT_H
#define SJ_AGENT_INPROC_CORE_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

/* sj_environment_value returns the value when `entry` is NAME=value, NULL for other entries;
 * sj_environment_find the entry itself, NULL: there is none. */
char *sj_environment_value(char *entry, const char *name);
char *sj_environment_find(char **environment, const char *name);

/* sj_environment_take copies SOJOURN_RUNTIME to `runtime` and restores the environment of before
 * the launch, in place: SOJOURN_* are removed, LD_PRELOAD gets its earlier value and keeps its
 * place, or is removed. False, with nothing changed, if the program was not launched by Sojourn;
 * false, with the environment restored, if the directory's name does not fit. */
bool sj_environment_take(char **environment, char *runtime, size_t runtime_bytes);

#endif
