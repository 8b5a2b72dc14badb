/* The rules of a policy by function, and the counts of calls that it does not keep. Rules are set
 * when a module is planned (the link's thread, before the program runs its code) and read by the
 * drain's thread, which alone counts. */
#ifndef SJ_AGENT_CONTROL_RULES_H
#define SJ_AGENT_CONTROL_RULES_H

#include "agent/control/emitter.h"
#include "agent/policy/json_place.h"
#include "agent/policy/policy.h"

typedef struct sj_rules sj_rules;

enum { SJ_RULED_FUNCTIONS = 1 << 22 }; /* ids from here on follow no rules of their own */

typedef enum sj_filter_reason {
    SJ_FILTERED_DEPTH = 0,
    SJ_FILTERED_MINIMUM = 1,
    SJ_FILTERED_SAMPLED = 2,
    SJ_FILTERED_THREAD = 3,
    SJ_FILTERED_REASONS = 4
} sj_filter_reason;

typedef struct sj_function_rule {
    uint32_t triggers; /* bits: places in the policy's list */
    uint32_t one_in;   /* 0, 1: all */
    uint32_t values;   /* bits: places in the policy's rules about values */
} sj_function_rule;

SJ_MUST_CHECK sj_status sj_rules_new(const sj_policy *policy, sj_rules **rules);
void sj_rules_free(sj_rules *rules);

/* sj_rules_name tells the symbol of a function. */
void sj_rules_name(sj_rules *rules, uint32_t function, const char *symbol);

/* sj_rules_module tells the path of a module that is there, sj_rules_source a source file. */
void sj_rules_module(sj_rules *rules, const char *path);
void sj_rules_source(sj_rules *rules, const char *file);

sj_function_rule sj_rules_get(const sj_rules *rules, uint32_t function);

/* sj_rules_sample counts a call of a function of which one in `one_in` is kept; true for the first
 * of each. */
bool sj_rules_sample(sj_rules *rules, uint32_t function, uint32_t one_in);

/* sj_rules_count notes a call that is not kept; its time is 0 when unknown. */
void sj_rules_count(sj_rules *rules, sj_filter_reason reason, uint32_t function, uint64_t ticks);

/* sj_rules_send sends what was counted since the last time. */
SJ_MUST_CHECK sj_status sj_rules_send(sj_rules *rules, sj_emitter *emitter);

/* A pattern that named nothing so far, with the way to it in the document. */
typedef struct sj_unmatched {
    const char *kind; /* "function", "source file", "module" */
    const sj_pattern *pattern;
    sj_json_step steps[4];
    size_t step_count;
} sj_unmatched;

/* sj_rules_each_unmatched visits them. */
void sj_rules_each_unmatched(const sj_rules *rules, void *context,
                             void (*visit)(void *context, const sj_unmatched *unmatched));

/* sj_rules_unmatched writes their patterns as a JSON list. */
void sj_rules_unmatched(const sj_rules *rules, char *text, size_t capacity);

#endif
