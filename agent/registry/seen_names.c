#include "agent/registry/seen_names.h"

#include <stdio.h>
#include <string.h>

void sj_seen_names_init(sj_seen_names *seen)
{
    *seen = (sj_seen_names){0};
    pthread_mutex_init(&seen->mutex, NULL);
}

void sj_seen_names_deinit(sj_seen_names *seen)
{
    pthread_mutex_destroy(&seen->mutex);
}

void sj_seen_names_add(sj_seen_names *seen, const char *name)
{
    const char *slash = strrchr(name, '/');
    const char *last = slash != NULL ? slash + 1 : name;
    size_t at = 0;
    pthread_mutex_lock(&seen->mutex);
    while (at < seen->count && strncmp(seen->names[at], last, SJ_SEEN_NAME_BYTES - 1) != 0) {
        at++;
    }
    if (at == SJ_SEEN_NAMES) {
        seen->others++;
    } else if (at == seen->count && last[0] != '\0') {
        snprintf(seen->names[seen->count++], SJ_SEEN_NAME_BYTES, "%s", last);
    }
    pthread_mutex_unlock(&seen->mutex);
}

void sj_seen_names_describe(sj_seen_names *seen, const char *none, char *text, size_t capacity)
{
    pthread_mutex_lock(&seen->mutex);
    snprintf(text, capacity, "%s", seen->count == 0 ? none : "");
    for (size_t i = 0; i < seen->count; i++) {
        const size_t used = strlen(text);
        snprintf(text + used, capacity - used, "%s\"%s\"", i == 0 ? "" : ", ", seen->names[i]);
    }
    if (seen->others != 0) {
        const size_t used = strlen(text);
        snprintf(text + used, capacity - used, " and others");
    }
    pthread_mutex_unlock(&seen->mutex);
}
