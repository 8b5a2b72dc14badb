/* Names that were met, each once: the first few in full, the rest counted. For messages that say
 * what there was instead of what a pattern asked for. Any thread. */
#ifndef SJ_AGENT_REGISTRY_SEEN_NAMES_H
#define SJ_AGENT_REGISTRY_SEEN_NAMES_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

enum { SJ_SEEN_NAMES = 8, SJ_SEEN_NAME_BYTES = 64 };

typedef struct sj_seen_names {
    pthread_mutex_t mutex;
    char names[SJ_SEEN_NAMES][SJ_SEEN_NAME_BYTES]; /* cut at that length */
    size_t count;
    uint64_t others; /* names, not all different, that found no room */
} sj_seen_names;

/* sj_seen_names_init makes an empty set in the caller's memory; _deinit releases its lock. */
void sj_seen_names_init(sj_seen_names *seen);
void sj_seen_names_deinit(sj_seen_names *seen);

/* sj_seen_names_add notes a name; a path is noted by its file name. */
void sj_seen_names_add(sj_seen_names *seen, const char *name);

/* sj_seen_names_describe writes "a", "b" and others; `none` when there is none. */
void sj_seen_names_describe(sj_seen_names *seen, const char *none, char *text, size_t capacity);

#endif
