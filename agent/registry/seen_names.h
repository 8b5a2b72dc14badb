/* Stores the first SJ_SEEN_NAMES different names, and counts the others. If a pattern of the policy
 * matches nothing, messages list the names that exist. Thread-safe. */
#ifndef SJ_AGENT_REGISTRY_SEEN_NAMES_H
#define SJ_AGENT_REGISTRY_SEEN_NAMES_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

enum { SJ_SEEN_NAMES = 8, SJ_SEEN_NAME_BYTES = 64 };

typedef struct sj_seen_names {
    pthread_mutex_t mutex;
    char names[SJ_SEEN_NAMES][SJ_SEEN_NAME_BYTES]; /* cut to that length */
    size_t count;
    uint64_t others; /* number of names, with repetitions, that were not stored */
} sj_seen_names;

/* sj_seen_names_init makes an empty set in the caller's memory. sj_seen_names_deinit releases its
 * lock. */
void sj_seen_names_init(sj_seen_names *seen);
void sj_seen_names_deinit(sj_seen_names *seen);

/* Adds a name. If `name` is a path, adds only the file name. */
void sj_seen_names_add(sj_seen_names *seen, const char *name);

/* Writes a list of the names to `text`. Writes `none` if there are no names. */
void sj_seen_names_describe(sj_seen_names *seen, const char *none, char *text, size_t capacity);

#endif
