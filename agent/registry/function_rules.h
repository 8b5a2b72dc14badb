/* The rules of a policy by function, and the counts of calls that the policy does not keep. The
 * link's thread sets the rules when a module is planned, before the program runs its code. The
 * drain's thread reads them, and only that thread counts. */
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
    uint32_t triggers; /* bits: indices in the policy's list */
    uint32_t one_in;   /* one of this many calls is kept; 0, 1: all */
    bool is_timed;     /* its calls always read a clock, and are never only counted */
    bool is_import;    /* stands for calls into a library, not for the library's function */
    uint32_t values;   /* index of its sj_ruled_values; 0: no rule about values names it */
} sj_function_rule;

/* The policy's rules about values that name a function. */
typedef struct sj_ruled_values {
    sj_rule_set values;
    sj_rule_set called_from; /* rules with a condition that names the function as the caller */
} sj_ruled_values;

SJ_MUST_CHECK sj_status sj_function_rules_new(const sj_policy *policy, sj_function_rules **rules);
void sj_function_rules_free(sj_function_rules *rules);

/* sj_function_rules_set_changes sets the table of changes (borrowed; NULL: none), to which
 * functions are added when they are named. sj_function_rules_beat tells the table that the recorder
 * is alive. */
void sj_function_rules_set_changes(sj_function_rules *rules, sj_changes_table *changes);
void sj_function_rules_beat(sj_function_rules *rules);

/* Sets the rules of a function by its symbol. */
void sj_function_rules_name(sj_function_rules *rules, uint32_t function, const char *symbol);
/* True if a function stands for calls into a library. The function in that library may be recorded,
 * too. */
bool sj_function_rules_is_import(const sj_function_rules *rules, uint32_t function);
/* Like sj_function_rules_name, for a recorded method of a runtime. Notes the rules that cannot
 * change the calls of such a method. */
void sj_function_rules_name_method(sj_function_rules *rules, uint32_t function, const char *symbol,
                                   sj_link_language language);

/* Visits the rules that cannot change calls of methods that they name, as texts for the user. Any
 * thread. */
void sj_function_rules_each_unchanging(const sj_function_rules *rules, void *context,
                                       void (*visit)(void *context, const char *text));
/* Visits the rules of the current policy that some functions do not follow, as texts for the user.
 * Reasons: redaction, missing debug data, missing capacity, or functions that are recorded
 * themselves. Any thread. */
void sj_function_rules_each_untyped(const sj_function_rules *rules, void *context,
                                    void (*visit)(void *context, const char *text));
/* Copies from `before` the obstacles of rules, if there is a table of changes. `before` must no
 * longer be used to name functions. */
void sj_function_rules_keep_unchanging(sj_function_rules *rules, const sj_function_rules *before);

/* Note the path of a module or of a source file. Patterns that match it are no longer unmatched. */
void sj_function_rules_module(sj_function_rules *rules, const char *path);
void sj_function_rules_source(sj_function_rules *rules, const char *file);

/* Notes the name of a thread. Returns true if the policy wants the thread. */
bool sj_function_rules_thread(sj_function_rules *rules, const char *name);

/* sj_function_rules_modules and sj_function_rules_threads return the names noted so far (borrowed).
 * sj_function_rules_has_thread returns true if a wanted thread was among them. */
sj_seen_names *sj_function_rules_modules(sj_function_rules *rules);
sj_seen_names *sj_function_rules_threads(sj_function_rules *rules);
bool sj_function_rules_has_thread(const sj_function_rules *rules);

/* Returns the rules of a function; all zero: none. */
sj_function_rule sj_function_rules_get(const sj_function_rules *rules, uint32_t function);
/* Returns the rules about values of a function; borrowed. */
const sj_ruled_values *sj_function_rules_values(const sj_function_rules *rules, uint32_t function);

/* Counts a call of a function of which one call in `one_in` is kept. Returns true if this call is
 * kept. */
bool sj_function_rules_sample(sj_function_rules *rules, uint32_t function, uint32_t one_in);

/* Counts a call that is not kept. `ticks`: its duration; 0: unknown. */
void sj_function_rules_count(sj_function_rules *rules, sj_filter_reason reason, uint32_t function,
                             uint64_t ticks);

/* Sends the counts since the last call. */
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
