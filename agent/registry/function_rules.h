/* The rules of a policy by function, and the counts of calls that it does not keep. Rules are set
 * when a module is planned (the link's thread, before the program runs its code) and read by the
 * drain's thread, which alone counts. */
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
    SJ_RULED_FUNCTIONS = 1 << 22, /* ids from here on follow no rules of their own */
    SJ_UNCHANGING_BYTES = 384     /* of a text about a rule that cannot change calls */
};

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
    bool is_timed;     /* its calls are never counted without a clock */
    bool is_import;    /* a call into a library, of what is in the library */
    uint32_t values;   /* where its sj_ruled_values are; 0: no rule about values names it */
} sj_function_rule;

/* The policy's rules about values that name a function. */
typedef struct sj_ruled_values {
    sj_rule_set values;
    sj_rule_set called_from; /* those whose condition on the caller names it */
} sj_ruled_values;

SJ_MUST_CHECK sj_status sj_function_rules_new(const sj_policy *policy, sj_function_rules **rules);
void sj_function_rules_free(sj_function_rules *rules);

/* sj_function_rules_set_changes makes functions that are named from now on known to a table of
 * changes (borrowed; NULL: none), sj_function_rules_beat keeps that in force. */
void sj_function_rules_set_changes(sj_function_rules *rules, sj_changes_table *changes);
void sj_function_rules_beat(sj_function_rules *rules);

/* sj_function_rules_name sets the rules of a function by its symbol. */
void sj_function_rules_name(sj_function_rules *rules, uint32_t function, const char *symbol);
/* sj_function_rules_is_import returns true if a function is a call into a library: the function of
 * the library that it enters may be recorded, too. */
bool sj_function_rules_is_import(const sj_function_rules *rules, uint32_t function);
/* sj_function_rules_name_method does so for a recorded method of a runtime, whose calls some rules
 * cannot change: these are noted. */
void sj_function_rules_name_method(sj_function_rules *rules, uint32_t function, const char *symbol,
                                   sj_link_language language);

/* sj_function_rules_each_unchanging visits the rules that cannot change calls of methods that they
 * name, as a text for the user. Any thread. */
void sj_function_rules_each_unchanging(const sj_function_rules *rules, void *context,
                                       void (*visit)(void *context, const char *text));
/* sj_function_rules_each_untyped visits the rules of the present policy that some functions do not
 * obey, for want of debug data or of room, or as they are recorded themselves. Any thread. */
void sj_function_rules_each_untyped(const sj_function_rules *rules, void *context,
                                    void (*visit)(void *context, const char *text));
/* sj_function_rules_keep_unchanging takes over what a list that names no more functions knows of
 * the same rules, when they still change calls. */
void sj_function_rules_keep_unchanging(sj_function_rules *rules, const sj_function_rules *before);

/* sj_function_rules_module notes the path of a module, sj_function_rules_source a source file:
 * their patterns have a match. */
void sj_function_rules_module(sj_function_rules *rules, const char *path);
void sj_function_rules_source(sj_function_rules *rules, const char *file);

/* sj_function_rules_thread notes the name of a thread and returns whether the policy wants it. */
bool sj_function_rules_thread(sj_function_rules *rules, const char *name);

/* sj_function_rules_modules and _threads are the names noted so far (borrowed), _has_thread whether
 * a wanted thread was among them. */
sj_seen_names *sj_function_rules_modules(sj_function_rules *rules);
sj_seen_names *sj_function_rules_threads(sj_function_rules *rules);
bool sj_function_rules_has_thread(const sj_function_rules *rules);

sj_function_rule sj_function_rules_get(const sj_function_rules *rules, uint32_t function);
/* sj_function_rules_values borrows the rules about values of a function. */
const sj_ruled_values *sj_function_rules_values(const sj_function_rules *rules, uint32_t function);

/* sj_function_rules_sample counts a call of a function of which one in `one_in` is kept; true for
 * the first of each. */
bool sj_function_rules_sample(sj_function_rules *rules, uint32_t function, uint32_t one_in);

/* sj_function_rules_count notes a call that is not kept; its time is 0 when unknown. */
void sj_function_rules_count(sj_function_rules *rules, sj_filter_reason reason, uint32_t function,
                             uint64_t ticks);

/* sj_function_rules_send sends what was counted since the last time. */
SJ_MUST_CHECK sj_status sj_function_rules_send(sj_function_rules *rules, sj_frame_writer *writer);

/* A pattern that named nothing so far, with the way to it in the document. */
typedef struct sj_unmatched {
    const char *kind; /* "function", "source file", "module" */
    const sj_pattern *pattern;
    sj_json_step steps[4];
    size_t step_count;
} sj_unmatched;

/* sj_function_rules_each_unmatched visits them. */
void sj_function_rules_each_unmatched(const sj_function_rules *rules, void *context,
                                      void (*visit)(void *context, const sj_unmatched *unmatched));

/* sj_function_rules_unmatched writes their patterns as a JSON list. */
void sj_function_rules_unmatched(const sj_function_rules *rules, char *text, size_t capacity);

#endif
