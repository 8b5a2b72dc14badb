/* Interface between the files that parse a policy. */
#ifndef SJ_AGENT_POLICY_POLICY_READER_H
#define SJ_AGENT_POLICY_POLICY_READER_H

#include "agent/policy/json_place.h"
#include "agent/policy/policy.h"

#include <jansson.h>

enum { SJ_POLICY_PATH = 16, SJ_POLICY_KEYS = 32 };

typedef struct sj_policy_reader {
    const char *text;
    size_t size;
    const char *origin;
    /* path to the current value; after an error, to the value at fault */
    sj_json_step path[SJ_POLICY_PATH];
    size_t depth;
    sj_policy *policy;
    size_t runtime; /* runtime whose part is being parsed: a row of sj_runtimes */
    bool has_clock; /* the document says which calls are timed */
    sj_error *error;
} sj_policy_reader;

typedef struct sj_policy_key {
    const char *name;
    sj_status (*read)(sj_policy_reader *reader, json_t *value); /* NULL: parsed elsewhere */
} sj_policy_key;

/* Reports an error at the current value, or at its key. Returns SJ_EINVAL. */
__attribute__((format(printf, 3, 4))) sj_status
sj_policy_fail(sj_policy_reader *reader, bool at_key, const char *format, ...);
/* Keep `path` up to date; `key` NULL: element `index` of a list. */
void sj_policy_enter(sj_policy_reader *reader, const char *key, size_t index);
void sj_policy_leave(sj_policy_reader *reader);

/* Parse one kind of value each. Return SJ_EINVAL with the place. */
SJ_MUST_CHECK sj_status sj_policy_object(sj_policy_reader *reader, json_t *object,
                                         const sj_policy_key *known, size_t count);
SJ_MUST_CHECK sj_status sj_policy_number(sj_policy_reader *reader, json_t *value, uint64_t least,
                                         uint64_t most, uint64_t *number);
SJ_MUST_CHECK sj_status sj_policy_word(sj_policy_reader *reader, json_t *value,
                                       const char *const *words, size_t count, size_t *index);
SJ_MUST_CHECK sj_status sj_policy_time(sj_policy_reader *reader, json_t *value, uint64_t least_ns,
                                       uint64_t *ns);
SJ_MUST_CHECK sj_status sj_policy_size(sj_policy_reader *reader, json_t *value, uint64_t least,
                                       uint64_t most, uint64_t *bytes);
SJ_MUST_CHECK sj_status sj_policy_pattern(sj_policy_reader *reader, json_t *value,
                                          sj_pattern *pattern);

/* Replaces a list of patterns. */
SJ_MUST_CHECK sj_status sj_policy_patterns(sj_policy_reader *reader, json_t *list,
                                           sj_pattern *patterns, size_t capacity, size_t *count);
SJ_MUST_CHECK sj_status sj_policy_boolean(sj_policy_reader *reader, json_t *value, bool *is_true);

/* Parses the part about row `runtime` of sj_runtimes (policy_runtimes.c). */
SJ_MUST_CHECK sj_status sj_policy_read_runtime(sj_policy_reader *reader, size_t runtime,
                                               json_t *value);

/* Parses the list of rules about values (policy_values.c). */
SJ_MUST_CHECK sj_status sj_policy_read_values(sj_policy_reader *reader, json_t *value);

/* Parses the part about freed memory (policy_zombies.c). */
SJ_MUST_CHECK sj_status sj_policy_read_zombies(sj_policy_reader *reader, json_t *value);

/* Parses the list of triggers (policy_triggers.c). */
SJ_MUST_CHECK sj_status sj_policy_read_triggers(sj_policy_reader *reader, json_t *value);

#endif
