#include "agent/inproc/link/environment.h"

#include "agent/abi/link.h"

#include <string.h>

#define PRELOAD "LD_PRELOAD"

enum { PRELOAD_PREFIX_BYTES = sizeof(SJ_ENV_PRELOAD) - sizeof(PRELOAD) };

char *sj_environment_value(char *entry, const char *name)
{
    const size_t length = strlen(name);
    return strncmp(entry, name, length) == 0 && entry[length] == '=' ? entry + length + 1 : NULL;
}

char *sj_environment_find(char **environment, const char *name)
{
    for (; *environment != NULL; environment++) {
        if (sj_environment_value(*environment, name) != NULL) {
            return *environment;
        }
    }
    return NULL;
}

/* Turns SOJOURN_PRELOAD=value into LD_PRELOAD=value, in place: the shorter name replaces the end of
 * the longer one. */
static char *make_preload(char *saved)
{
    if (saved != NULL) {
        saved += PRELOAD_PREFIX_BYTES;
        memcpy(saved, PRELOAD, sizeof(PRELOAD) - 1);
    }
    return saved;
}

static void restore_environment(char **environment)
{
    static const char ours[] = "SOJOURN_";
    char *preload = make_preload(sj_environment_find(environment, SJ_ENV_PRELOAD));
    char **to = environment;
    for (char **from = environment; *from != NULL; from++) {
        if (*from == preload - PRELOAD_PREFIX_BYTES ||
            strncmp(*from, ours, sizeof(ours) - 1) == 0) {
            continue;
        }
        if (sj_environment_value(*from, PRELOAD) == NULL) {
            *to++ = *from;
        } else if (preload != NULL) {
            *to++ = preload;
        }
    }
    *to = NULL;
}

bool sj_environment_consume(char **environment, char *runtime, size_t runtime_bytes)
{
    char *entry = sj_environment_find(environment, SJ_ENV_RUNTIME);
    if (entry == NULL) {
        return false;
    }
    const char *value = sj_environment_value(entry, SJ_ENV_RUNTIME);
    const size_t length = strlen(value);
    const bool fits = length != 0 && length < runtime_bytes;
    if (fits) {
        memcpy(runtime, value, length + 1);
    }
    restore_environment(environment);
    return fits;
}
