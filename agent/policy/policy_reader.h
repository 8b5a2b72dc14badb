/* Interface between the files that parse a policy.
 *
 * The functions that parse return SJ_EINVAL if the value is not valid; the error says where. */
#ifndef SJ_AGENT_POLICY_POLICY_READER_H
#define SJ_AGENT_POLICY_POLICY_READER_H

#include "agent/policy/json_place.h"
#include "agent/policy/policy.h"

#include <jansson.h>
#include <stddef.h>

enum { SJ_POLICY_PATH = 16, SJ_POLICY_KEYS = 32 };

typedef struct sj_policy_reader {
    const char *text;
    size_t size;
    const char *origin;
    /* path to the current value; after an error, to the value at fault */
    sj_json_step path[SJ_POLICY_PATH];
    size_t depth;
    sj_policy *policy;
    bool has_clock; /* the document says which calls are timed */
    sj_error *error;
} sj_policy_reader;

typedef enum sj_policy_kind {
    SJ_KEY_CUSTOM = 0, /* `parse` parses the value; NULL: the value is parsed elsewhere */
    SJ_KEY_OBJECT,     /* an object with `keys`, which describe the member */
    SJ_KEY_BOOLEAN,    /* the member becomes 0 or 1 */
    SJ_KEY_TRUE,       /* true only: the member becomes 1 */
    SJ_KEY_NUMBER,     /* a whole number from `least` to `most` */
    SJ_KEY_WORD, /* one of `words` from index `least` to `most` - 1: the member becomes the index */
    SJ_KEY_TIME, /* at least `least` nanoseconds */
    SJ_KEY_SIZE, /* from `least` to `most` bytes */
    /* at least `least` bytes; with its NUL it must fit in the member. If `bytes` is 0, any text */
    SJ_KEY_TEXT,
    SJ_KEY_PATTERN,  /* the member is a sj_pattern */
    SJ_KEY_PATTERNS, /* the member is an array of sj_pattern; `count_offset`: the member that counts
                        them */
    /* patterns in the format that the agent reads: one after the other, each with a NUL */
    SJ_KEY_NAMES
} sj_policy_kind;

/* A key, and the member of a structure that stores its value; a number may have any width. */
typedef struct sj_policy_key {
    const char *name;
    sj_policy_kind kind;
    size_t offset; /* place of the member */
    size_t bytes;  /* size of the member; 0: the value is not stored */
    size_t count_offset;
    uint64_t least, most;
    uint64_t unit; /* times and sizes are divided by it; 0 means 1 */
    const char *const *words;
    const struct sj_policy_key *keys;
    size_t key_count;
    /* `target` is the member. */
    sj_status (*parse)(sj_policy_reader *reader, void *target, json_t *value);
} sj_policy_key;

#define SJ_MEMBER(object, member)                                                                  \
    .offset = offsetof(object, member), .bytes = sizeof(((object *)0)->member)
#define SJ_PATTERNS(object, member, count)                                                         \
    SJ_KEY_PATTERNS, SJ_MEMBER(object, member), .count_offset = offsetof(object, count)
/* A list of keys, and their number: the last arguments of sj_policy_object. */
#define SJ_KEY_LIST(list) (list), sizeof(list) / sizeof((list)[0])
#define SJ_WORDS(list) .words = (list), .most = sizeof(list) / sizeof((list)[0])
#define SJ_KEYS(list) .keys = (list), .key_count = sizeof(list) / sizeof((list)[0])

/* Reports an error at the current value, or at its key. Returns SJ_EINVAL. */
__attribute__((format(printf, 3, 4))) sj_status
sj_policy_fail(sj_policy_reader *reader, bool at_key, const char *format, ...);
/* sj_policy_enter appends a step to `path`: the key `key`, or element `index` of a list if `key` is
 * NULL. sj_policy_leave removes the last step. */
void sj_policy_enter(sj_policy_reader *reader, const char *key, size_t index);
void sj_policy_leave(sj_policy_reader *reader);

/* Each function parses one kind of value. It returns SJ_EINVAL if the value is not valid; the error
 * says where. sj_policy_object stores the values in the structure `object`, which the keys
 * describe. */
SJ_MUST_CHECK sj_status sj_policy_object(sj_policy_reader *reader, json_t *value, void *object,
                                         const sj_policy_key *known, size_t count);
SJ_MUST_CHECK sj_status sj_policy_number(sj_policy_reader *reader, json_t *value, uint64_t least,
                                         uint64_t most, uint64_t *number);
SJ_MUST_CHECK sj_status sj_policy_word(sj_policy_reader *reader, json_t *value,
                                       const char *const *words, size_t count, size_t *index);
SJ_MUST_CHECK sj_status sj_policy_time(sj_policy_reader *reader, json_t *value, uint64_t least_ns,
                                       uint64_t *ns);
SJ_MUST_CHECK sj_status sj_policy_text(sj_policy_reader *reader, json_t *value, size_t least,
                                       char *text, size_t bytes);
SJ_MUST_CHECK sj_status sj_policy_pattern(sj_policy_reader *reader, json_t *value,
                                          sj_pattern *pattern);
SJ_MUST_CHECK sj_status sj_policy_boolean(sj_policy_reader *reader, json_t *value, bool *is_true);

/* Replace a list of patterns. */
SJ_MUST_CHECK sj_status sj_policy_patterns(sj_policy_reader *reader, json_t *list,
                                           sj_pattern *patterns, size_t capacity, size_t *count);
SJ_MUST_CHECK sj_status sj_policy_names(sj_policy_reader *reader, json_t *list, char *names,
                                        size_t bytes);

/* Each function parses a part of the policy, as sj_policy_key.parse does. The part about a runtime
 * is parsed into its sj_runtime_selection (policy_runtimes.c), the rules about values into a
 * sj_selection (policy_values.c). The part about freed memory (policy_zombies.c) and the triggers
 * (policy_triggers.c) are parsed into a sj_policy. */
SJ_MUST_CHECK sj_status sj_policy_read_runtime(sj_policy_reader *reader, void *target,
                                               json_t *value);
SJ_MUST_CHECK sj_status sj_policy_read_values(sj_policy_reader *reader, void *target,
                                              json_t *value);
SJ_MUST_CHECK sj_status sj_policy_read_zombies(sj_policy_reader *reader, void *target,
                                               json_t *value);
SJ_MUST_CHECK sj_status sj_policy_read_triggers(sj_policy_reader *reader, void *target,
                                                json_t *value);

#endif
