/* Rules about values: of which functions which arguments and results are recorded, and under which
 * condition they are kept. Read from a policy (policy_values.c); immutable after that, but for
 * rules that are added to a running recording's; any thread.
 */
#ifndef SJ_AGENT_POLICY_VALUE_RULES_H
#define SJ_AGENT_POLICY_VALUE_RULES_H

#include "agent/abi/changes.h"
#include "agent/objfile/function_types.h"
#include "agent/policy/long_double.h"
#include "agent/policy/pattern.h"
#include "agent/policy/value_conditions.h"
#include "proto/block/block.h"

#include <stdatomic.h>

/* What a rule does with a call (agent/abi/changes.h says when and how). */
typedef struct sj_value_change {
    sj_change_action action;
    uint8_t target; /* sj_value_descriptor of what is set */
    int32_t error;
    uint64_t bits;
    uint64_t delay_ns;
    uint64_t from, times, one_in;
    uint64_t lasts_ns; /* from when it is set; 0: as long as the recording */
    uint8_t data[SJ_CHANGE_DATA_BYTES];
    uint32_t data_bytes;
    char begin_mark[SJ_CHANGE_MARK_BYTES]; /* between the program's marks; "": from the start */
    char end_mark[SJ_CHANGE_MARK_BYTES];
    char thrown[SJ_CHANGE_THROWN_BYTES]; /* class of an exception; the rest 0 */
} sj_value_change;

typedef struct sj_value_rule {
    char name[SJ_VALUE_RULE_BYTES];
    sj_pattern function;
    uint8_t descriptor;     /* its position counts the registers of a class, as the probe does */
    uint8_t stored;         /* the same value with the position under which it is stored */
    bool is_source;         /* made of a signature: stored by the position in source order */
    bool is_cpu;            /* of no value: CPU time of calls is measured */
    bool is_memory;         /* of no value: what calls allocate and free is counted */
    bool is_typed;          /* of no value of its own: debug data say what the function has */
    uint8_t limit;          /* SJ_PLACE_LIMIT and above: of its texts; 0: as otherwise */
    uint8_t length_place;   /* descriptor of the argument that is its text's length; 0: none */
    uint8_t filled;         /* SJ_PLACE_FILLED or _INT: its text is what the function has filled */
    uint8_t filled_place;   /* then the descriptor of the argument that leads there */
    size_t row;             /* of the document's list; a signature makes several rules */
    sj_value_condition own; /* on the value itself */
    sj_value_condition conditions[SJ_VALUE_CONDITIONS]; /* on the whole call */
    size_t condition_count;
    bool changes;              /* what `change` says is done when it is met */
    bool came_late;            /* it was added while the recording ran */
    bool is_fresh;             /* and no plan that was there has been looked at for it yet */
    bool is_former;            /* of an earlier policy: the present one has none like it */
    _Atomic bool is_withdrawn; /* the policy that brought it was refused: it matches nothing */
    sj_value_change change;
} sj_value_rule;

/* Shared by a policy, its selection and what records by them. */
typedef struct sj_value_rules {
    _Atomic uint32_t users;
    _Atomic size_t count; /* an added rule is complete before it counts */
    sj_value_rule items[SJ_VALUE_RULES];
    const char *names[SJ_VALUE_RULES]; /* of the items */
    /* Of typed rules: what debug data say of functions, by id; mapped lazily. NULL: no such rule */
    _Atomic(sj_typed_function *) *_Atomic typed;
    _Atomic uint32_t highest_typed;
    _Atomic uint32_t found[SJ_VALUE_RULES];   /* functions of each that types are known of */
    _Atomic uint32_t missing[SJ_VALUE_RULES]; /* and others; of memory: methods without it */
    _Atomic uint8_t split[SJ_VALUE_RULES];    /* sj_split_state, of modules of those others */
    _Atomic uint32_t crowded[SJ_VALUE_RULES]; /* functions that have no place left for its value */
    _Atomic uint32_t settled[SJ_VALUE_RULES]; /* functions whose positions other rules have given
                                                 another meaning, of typed ones */
    _Atomic uint32_t unreached[SJ_VALUE_RULES]; /* recorded functions behind calls into libraries,
                                                   whose results it does not change */
    _Atomic uint64_t met[SJ_VALUE_RULES]; /* calls that meet all conditions but their number */
} sj_value_rules;

enum { SJ_TYPED_FUNCTIONS = 1 << 22 /* ids from here on have no types */ };

/* sj_value_rules_new makes an empty list with one user. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_value_rules_new(sj_value_rules **rules);
/* sj_value_rules_share adds a user; NULL stays NULL. */
sj_value_rules *sj_value_rules_share(sj_value_rules *rules);
void sj_value_rules_free(sj_value_rules *rules); /* by each user */

/* sj_value_rule_same compares what two rules ask for. */
bool sj_value_rule_same(const sj_value_rule *left, const sj_value_rule *right);

/* sj_value_rules_same compares what two lists ask for; NULL is the empty one. */
bool sj_value_rules_same(const sj_value_rules *left, const sj_value_rules *right);

/* sj_value_rule_same_place: two rules that change calls are about the same value of the same
 * functions, called by the same, so that what one does the other can do in its place. */
bool sj_value_rule_same_place(const sj_value_rule *left, const sj_value_rule *right);

/* sj_value_rules_have_records returns whether a list records all that others record; what rules
 * change does not matter. NULL is the empty list. */
bool sj_value_rules_have_records(const sj_value_rules *rules, const sj_value_rules *others);

/* sj_value_rules_add_missing adds to a list that a recording uses what it lacks of `wanted`, the
 * rules of the present policy (NULL: none): places of rules stay what they are, and those of
 * earlier policies become former ones. `refuse` is called for each rule that cannot be added, with
 * the reason. One thread; others may read the list meanwhile. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_value_rules_add_missing(sj_value_rules *rules,
                                                   const sj_value_rules *wanted, void *context,
                                                   void (*refuse)(void *context, const char *rule,
                                                                  const char *why));

/* What sj_value_rules_add_missing changes of a list. */
typedef struct sj_value_rules_past {
    size_t count;
    size_t rows[SJ_VALUE_RULES];
    bool are_former[SJ_VALUE_RULES];
    bool are_withdrawn[SJ_VALUE_RULES];
} sj_value_rules_past;

/* sj_value_rules_remember notes a list before rules are added; sj_value_rules_undo takes these out
 * again, as the policy that brought them is refused: their places stay, and they match nothing
 * until a policy asks for them again. */
void sj_value_rules_remember(const sj_value_rules *rules, sj_value_rules_past *past);
void sj_value_rules_undo(sj_value_rules *rules, const sj_value_rules_past *past);

/* sj_value_rules_change returns whether one of them changes calls; NULL is the empty list. */
bool sj_value_rules_change(const sj_value_rules *rules);

/* sj_value_rules_ask_types returns whether one of them is typed; likewise. */
bool sj_value_rules_ask_types(const sj_value_rules *rules);

/* sj_value_rules_match gives the rules about a function. */
sj_rule_set sj_value_rules_match(const sj_value_rules *rules, const char *symbol);

/* sj_value_rules_of_managed leaves of matched rules those that are possible for methods of managed
 * runtimes: without those of signatures, whose registers are the native convention's, and of
 * memory. */
sj_rule_set sj_value_rules_of_managed(const sj_value_rules *rules, const sj_rule_set *matched);

/* sj_value_rules_within leaves out those of the matched rules that only record an argument behind
 * the last of `parameters` parameters. */
sj_rule_set sj_value_rules_within(const sj_value_rules *rules, const sj_rule_set *matched,
                                  uint32_t parameters);

/* sj_value_rules_fresh_of leaves of matched rules those that no plan has been looked at for. */
sj_rule_set sj_value_rules_fresh_of(const sj_value_rules *rules, const sj_rule_set *matched);

/* sj_value_rules_name_imports returns whether one of them is about calls into libraries; NULL is
 * the empty list. */
bool sj_value_rules_name_imports(const sj_value_rules *rules);

/* sj_value_rules_results_of leaves of matched rules those that record what is known when a call
 * returns: its result, or errno. */
sj_rule_set sj_value_rules_results_of(const sj_value_rules *rules, const sj_rule_set *matched);

/* sj_value_rules_count_unreached notes for those of matched rules about calls into libraries which
 * would change what a call returns a function that is recorded itself. */
void sj_value_rules_count_unreached(sj_value_rules *rules, const sj_rule_set *matched);

/* sj_value_rules_typed_of leaves the typed ones of matched rules: none for methods of
 * Objective-C. */
sj_rule_set sj_value_rules_typed_of(const sj_value_rules *rules, const sj_rule_set *matched,
                                    const char *symbol);

/* sj_value_rules_measure_cpu returns whether one of the matched rules asks for CPU time. */
bool sj_value_rules_measure_cpu(const sj_value_rules *rules, const sj_rule_set *matched);
/* sj_value_rules_measure_memory: likewise, what they allocate and free. */
bool sj_value_rules_measure_memory(const sj_value_rules *rules, const sj_rule_set *matched);

/* sj_value_rules_count_memory: one of all rules does; NULL is the empty list. */
bool sj_value_rules_count_memory(const sj_value_rules *rules);

/* sj_value_rules_need_types makes room for types, if there is none. One thread; others may read the
 * list meanwhile. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_value_rules_need_types(sj_value_rules *rules);

/* sj_value_rules_set_typed takes over what is known of a function, before any of its values is
 * asked about; sj_value_rules_typed borrows it, NULL: nothing. Any thread. */
void sj_value_rules_set_typed(sj_value_rules *rules, uint32_t function, sj_typed_function *typed);
const sj_typed_function *sj_value_rules_typed(const sj_value_rules *rules, uint32_t function);

/* sj_value_rules_are_numbered returns whether values of a function are recorded already, by one of
 * the matched rules, under positions that say nothing of its debug data. */
bool sj_value_rules_are_numbered(const sj_value_rules *rules, const sj_rule_set *matched);

/* sj_value_rules_count_settled notes for typed rules a function of which that is true, and for
 * others one that has types already. */
void sj_value_rules_count_settled(sj_value_rules *rules, const sj_rule_set *refused);

/* sj_value_rules_numbered_of leaves of matched rules those whose positions are not those of the
 * debug data. */
sj_rule_set sj_value_rules_numbered_of(const sj_value_rules *rules, const sj_rule_set *matched);

/* sj_value_rules_count_types notes for typed rules whether a function's types are known, and what
 * became of split debug data of its module. */
void sj_value_rules_count_types(sj_value_rules *rules, const sj_rule_set *typed, bool is_found,
                                sj_split_state split);

/* sj_value_rules_count_managed notes a method of Mono or Java for those of the matched rules that
 * only native functions obey: types by debug data, and memory. Once a method. */
void sj_value_rules_count_managed(sj_value_rules *rules, const sj_rule_set *matched);

/* sj_typed_value_take makes of what a place held, or led to, a value that is stored: `from` with
 * its place as descriptor. Its text is that of `from`, of the type, or `number`. False: it was not
 * there. */
enum { SJ_TYPED_NUMBER_BYTES = SJ_LONG_DOUBLE_TEXT_BYTES };
bool sj_typed_value_take(const sj_typed_value *typed, const sj_block_value *from,
                         sj_block_value *value, char number[SJ_TYPED_NUMBER_BYTES]);

/* sj_value_rules_decide_calls returns whether one of the matched rules sets what calls return, or
 * skips them. */
bool sj_value_rules_decide_calls(const sj_value_rules *rules, const sj_rule_set *matched);

/* sj_value_rules_list adds what is to be recorded of a function for these rules to `descriptors`,
 * of which `used` are there: each value once; the rest becomes 0. */
void sj_value_rules_list(const sj_value_rules *rules, const sj_rule_set *matched,
                         uint8_t *descriptors, size_t used, size_t capacity);

/* sj_value_places_have returns whether a value is recorded of a function with these places. */
bool sj_value_places_have(const uint8_t places[SJ_PLACES_PER_FUNCTION], uint8_t place);

/* sj_value_rules_have_room returns whether what a rule is about is in the places of a function, its
 * text as long as the rule asks. */
bool sj_value_rules_have_room(const sj_value_rules *rules, size_t rule,
                              const uint8_t places[SJ_PLACES_PER_FUNCTION]);

/* sj_value_rules_count_crowded_types notes for typed rules a function that has values in its debug
 * data which found no room, or less of which is recorded. */
void sj_value_rules_count_crowded_types(sj_value_rules *rules, const sj_rule_set *typed);

/* sj_value_rules_count_crowded notes a function in whose places what one of the rules about it is
 * about found no room, or a text is recorded shorter than the rule asks, or by another length:
 * rules that are written alike are counted when they are read, others meet at the function only. */
void sj_value_rules_count_crowded(sj_value_rules *rules, const sj_rule_set *matched,
                                  const uint8_t places[SJ_PLACES_PER_FUNCTION]);

/* sj_value_rule_holds returns whether a value is one that the rule keeps. */
bool sj_value_rule_holds(const sj_value_rule *rule, const sj_block_value *value);

/* sj_value_rule_has_condition: not every call meets it, so that those that do are its hits. */
static inline bool sj_value_rule_has_condition(const sj_value_rule *rule)
{
    return rule->own.comparison != SJ_VALUE_ALWAYS || rule->condition_count != 0;
}

/* sj_value_rule_is_late: whether a call meets the rule is known at its exit. */
bool sj_value_rule_is_late(const sj_value_rule *rule);

/* sj_value_rules_meet says whether a call meets all conditions of rule `number` on the whole call,
 * and counts it if it meets all but that on its number. Any thread. */
bool sj_value_rules_meet(sj_value_rules *rules, uint32_t number, const sj_call_facts *facts);

/* sj_value_rules_judge_calls returns whether one has conditions on the whole call; NULL: none. */
bool sj_value_rules_judge_calls(const sj_value_rules *rules);

/* sj_value_rules_called_from gives the rules whose condition on the caller names a function. */
sj_rule_set sj_value_rules_called_from(const sj_value_rules *rules, const char *symbol);

/* sj_value_rules_settle: the plans that are there have been looked at. */
void sj_value_rules_settle(sj_value_rules *rules); /* NULL is allowed */

/* The words of a policy. */
extern const char *const sj_value_kind_words[SJ_VALUE_RULE_KINDS]; /* the first is "" */
extern const char *const sj_value_comparison_words[SJ_VALUE_COMPARISONS];

#endif
