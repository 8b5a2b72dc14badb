/* The rules of a policy by function, and the counts of calls that the policy does not keep. The
 * link's thread sets a function's rules when its module is planned, before the program runs the
 * module's code. The drain's thread reads the rules. Only the drain's thread counts calls. */
#ifndef SJ_AGENT_REGISTRY_FUNCTION_RULES_H
#define SJ_AGENT_REGISTRY_FUNCTION_RULES_H

#include "agent/policy/change_obstacle.h"
#include "agent/policy/json_place.h"
#include "agent/policy/policy.h"
#include "agent/registry/changes_table.h"
#include "agent/registry/seen_names.h"
#include "agent/session/frame_writer.h"

typedef struct sj_function_rules sj_function_rules;

enum {
    SJ_RULED_FUNCTIONS = 1 << 22, /* functions with this id or a higher one have no rules */
    SJ_UNCHANGING_BYTES = 384     /* capacity of a text about a rule that cannot change calls */
};

typedef enum sj_filter_reason {
    SJ_FILTERED_DEPTH = 0,
    SJ_FILTERED_MINIMUM = 1,
    SJ_FILTERED_SAMPLED = 2,
    SJ_FILTERED_THREAD = 3,
    SJ_FILTERED_REASONS = 4
} sj_filter_reason;

typedef struct sj_function_rule {
    uint32_t triggers; /* bit i: trigger i of the policy applies to the function */
    uint32_t one_in;   /* one of this many calls is kept; 0 or 1: all are */
    bool is_timed;     /* each call reads the clock; none is counted without its times */
    bool is_import;    /* stands for calls into a library, not for the library's function */
    /* index of the function's sj_ruled_values; 0: no value rule names the function */
    uint32_t values;
} sj_function_rule;

/* The policy's value rules that name a function. */
typedef struct sj_ruled_values {
    sj_rule_set values;
    /* value rules with a condition on the caller that names this function */
    sj_rule_set called_from;
} sj_ruled_values;

/* Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_function_rules_new(const sj_policy *policy, sj_function_rules **rules);
void sj_function_rules_free(sj_function_rules *rules);

/* sj_function_rules_set_changes sets the table of changes (borrowed; NULL: none).
 * sj_function_rules_name then adds functions to it. sj_function_rules_beat calls
 * sj_changes_table_beat. */
void sj_function_rules_set_changes(sj_function_rules *rules, sj_changes_table *changes);
void sj_function_rules_beat(sj_function_rules *rules);

/* Sets the rules of `function`: those whose patterns match `symbol`. */
void sj_function_rules_name(sj_function_rules *rules, uint32_t function, const char *symbol);
/* True if a function stands for calls into a library. The function in that library may be recorded,
 * too. */
bool sj_function_rules_is_import(const sj_function_rules *rules, uint32_t function);
/* Like sj_function_rules_name, for a recorded method of a runtime. Stores which rules cannot change
 * calls of such a method, for sj_function_rules_each_unchanging. */
void sj_function_rules_name_method(sj_function_rules *rules, uint32_t function, const char *symbol,
                                   sj_link_language language);

/* Visits the rules that cannot change calls of methods that they name, as texts for the user. Any
 * thread. */
void sj_function_rules_each_unchanging(const sj_function_rules *rules, void *context,
                                       void (*visit)(void *context, const char *text));
/* Visits the value rules of the current policy that could not be applied to some functions, as
 * texts for the user. Reasons are redaction, missing debug data, missing capacity, or imports whose
 * library function is itself recorded. Any thread. */
void sj_function_rules_each_untyped(const sj_function_rules *rules, void *context,
                                    void (*visit)(void *context, const char *text));
/* Copies from `before` which rules cannot change calls, if there is a table of changes. Do not name
 * functions in `before` after that. */
void sj_function_rules_keep_unchanging(sj_function_rules *rules, const sj_function_rules *before);

/* Store that a module or a source file with this path exists. Patterns that match the path are then
 * not reported as unmatched. */
void sj_function_rules_module(sj_function_rules *rules, const char *path);
void sj_function_rules_source(sj_function_rules *rules, const char *file);

/* Stores the name of a thread. Returns true if the policy records the thread. */
bool sj_function_rules_thread(sj_function_rules *rules, const char *name);

/* sj_function_rules_modules and sj_function_rules_threads return the names stored so far
 * (borrowed). sj_function_rules_has_thread returns true if the policy records at least one of these
 * threads. */
sj_seen_names *sj_function_rules_modules(sj_function_rules *rules);
sj_seen_names *sj_function_rules_threads(sj_function_rules *rules);
bool sj_function_rules_has_thread(const sj_function_rules *rules);

/* Returns the rules of a function. All members are zero if it has none. */
sj_function_rule sj_function_rules_get(const sj_function_rules *rules, uint32_t function);
/* Returns the value rules of a function. Borrowed from `rules`. */
const sj_ruled_values *sj_function_rules_values(const sj_function_rules *rules, uint32_t function);

/* Counts a call of a function of which one call in `one_in` is kept. Returns true if this call is
 * kept. */
bool sj_function_rules_sample(sj_function_rules *rules, uint32_t function, uint32_t one_in);

/* Counts a call that is not kept. `ticks` is the call's duration; 0: unknown. */
void sj_function_rules_count(sj_function_rules *rules, sj_filter_reason reason, uint32_t function,
                             uint64_t ticks);

/* Sends the counts of calls that were not kept since the last call of this function. Returns an
 * error of sj_frame_writer_send. */
SJ_MUST_CHECK sj_status sj_function_rules_send(sj_function_rules *rules, sj_frame_writer *writer);

/* A pattern that has matched nothing so far, with its position in the policy's document. */
typedef struct sj_unmatched {
    const char *kind; /* "function", "source file", "module" */
    const sj_pattern *pattern;
    sj_json_step steps[4];
    size_t step_count;
} sj_unmatched;

/* Visits the patterns that have matched nothing so far. */
void sj_function_rules_each_unmatched(const sj_function_rules *rules, void *context,
                                      void (*visit)(void *context, const sj_unmatched *unmatched));

/* Writes the patterns of sj_function_rules_each_unmatched as a JSON list. */
void sj_function_rules_unmatched(const sj_function_rules *rules, char *text, size_t capacity);

#endif
