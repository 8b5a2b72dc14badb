/* Rules about values: the functions, arguments and results to record, and the conditions under
 * which a value is kept. Parsed from a policy (policy_values.c). Immutable after that, except that
 * rules can be added to a running recording. Thread-safe. */
#ifndef SJ_AGENT_POLICY_VALUE_RULES_H
#define SJ_AGENT_POLICY_VALUE_RULES_H

#include "agent/abi/changes.h"
#include "agent/objfile/function_types.h"
#include "agent/policy/long_double.h"
#include "agent/policy/pattern.h"
#include "agent/policy/redaction.h"
#include "agent/policy/value_conditions.h"
#include "proto/block/block.h"

#include <stdatomic.h>

/* How a rule changes a call (agent/abi/changes.h). */
typedef struct sj_value_change {
    sj_change_action action;
    uint8_t target; /* sj_value_descriptor of the value to set */
    int32_t error;
    uint64_t bits;
    uint64_t delay_ns;
    uint64_t from, times, one_in;
    uint64_t lasts_ns; /* duration from its activation; 0: until the end of the recording */
    uint8_t data[SJ_CHANGE_DATA_BYTES];
    uint32_t data_bytes;
    /* active between marks of the program; "": from the start */
    char begin_mark[SJ_CHANGE_MARK_BYTES];
    char end_mark[SJ_CHANGE_MARK_BYTES];
    char thrown[SJ_CHANGE_THROWN_BYTES]; /* class of an exception; unused bytes are 0 */
} sj_value_change;

typedef struct sj_value_rule {
    char name[SJ_VALUE_RULE_BYTES];
    sj_pattern function;
    uint8_t descriptor; /* its position counts the registers of a class, as the probe does */
    uint8_t stored;     /* the same value with the position under which it is stored */
    /* from a signature: stored by its position in the source; also true for typed, CPU and memory
     * rules */
    bool is_source;
    bool is_cpu;          /* not a value: measures the CPU time of calls */
    bool is_memory;       /* not a value: counts what calls allocate and free */
    bool is_typed;        /* not one value: debug data describe the function's values */
    uint8_t limit;        /* SJ_PLACE_LIMIT and above: limit of its texts; 0: the default */
    uint8_t length_place; /* descriptor of the argument that holds its text's length; 0: none */
    /* SJ_PLACE_FILLED or SJ_PLACE_FILLED_INT: the function fills in its text; 0: it does not */
    uint8_t filled;
    uint8_t filled_place;   /* descriptor of the argument that points to the filled text */
    size_t row;             /* index in the document's list; a signature becomes several rules */
    sj_value_condition own; /* condition on the value itself */
    sj_value_condition conditions[SJ_VALUE_CONDITIONS]; /* conditions on the whole call */
    size_t condition_count;
    bool changes;              /* if its conditions hold, changes the call as `change` says */
    bool came_late;            /* added while the recording ran */
    bool is_fresh;             /* added, and existing plans are not checked for it yet */
    bool is_former;            /* an earlier policy had it, the current one does not */
    _Atomic bool is_withdrawn; /* its policy was refused: matches nothing */
    sj_value_change change;
} sj_value_rule;

/* Shared by a policy, its selection, and the recording. */
typedef struct sj_value_rules {
    _Atomic uint32_t users;
    _Atomic size_t count; /* an added rule is complete before it counts */
    sj_value_rule items[SJ_VALUE_RULES];
    const char *names[SJ_VALUE_RULES]; /* names of the items */
    /* functions of which no rule reads a text; set before the first function is matched */
    sj_pattern redacted[SJ_REDACTED_FUNCTIONS];
    size_t redacted_count;
    /* For typed rules: what debug data say of functions, by id; mapped lazily. NULL: there is no
     * typed rule. */
    _Atomic(sj_typed_function *) *_Atomic typed;
    _Atomic uint32_t highest_typed;
    _Atomic uint32_t found[SJ_VALUE_RULES]; /* per rule: functions whose types are known */
    /* typed rules: functions whose types are not known; memory rules: methods, for which memory is
     * not counted */
    _Atomic uint32_t missing[SJ_VALUE_RULES];
    _Atomic uint8_t split[SJ_VALUE_RULES];    /* sj_split_state of the modules of those functions */
    _Atomic uint32_t crowded[SJ_VALUE_RULES]; /* functions without capacity for the rule's value */
    /* the rule records nothing of some functions, whose texts are redacted */
    _Atomic bool is_redacted[SJ_VALUE_RULES];
    /* Typed rules: functions for which other rules have defined positions differently. */
    _Atomic uint32_t settled[SJ_VALUE_RULES];
    /* Recorded functions that calls into libraries reach, whose results the rule does not
     * change. */
    _Atomic uint32_t unreached[SJ_VALUE_RULES];
    /* calls that meet all conditions except the one on their number */
    _Atomic uint64_t met[SJ_VALUE_RULES];
} sj_value_rules;

enum { SJ_TYPED_FUNCTIONS = 1 << 22 /* functions with this id or a higher one have no types */ };

/* Makes an empty list with one user. Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_value_rules_new(sj_value_rules **rules);
/* Adds a user and returns the list; NULL stays NULL. */
sj_value_rules *sj_value_rules_share(sj_value_rules *rules);
void sj_value_rules_free(sj_value_rules *rules); /* called once by each user */

/* True if two rules record or change the same values under the same conditions. */
bool sj_value_rule_same(const sj_value_rule *left, const sj_value_rule *right);

/* True if two lists have the same rules; NULL is the empty list. */
bool sj_value_rules_same(const sj_value_rules *left, const sj_value_rules *right);

/* True if two rules that change calls have the same name, and are about the same value of the same
 * functions and callers. One can then replace the other. */
bool sj_value_rule_same_place(const sj_value_rule *left, const sj_value_rule *right);

/* True if a list records everything that `others` records. Ignores rules of `others` that change
 * calls or are withdrawn. NULL is the empty list. */
bool sj_value_rules_have_records(const sj_value_rules *rules, const sj_value_rules *others);

/* Adds to a list in use the rules of `wanted` that it lacks. `wanted` is the current policy's list
 * (NULL: empty). The indexes of rules do not change; rules of earlier policies become former ones.
 * Calls `refuse` with the reason for each rule that cannot be added. Only one thread may call this
 * function, but other threads may read the list meanwhile. Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_value_rules_add_missing(sj_value_rules *rules,
                                                   const sj_value_rules *wanted, void *context,
                                                   void (*refuse)(void *context, const char *rule,
                                                                  const char *why));

/* State of a list before sj_value_rules_add_missing. */
typedef struct sj_value_rules_past {
    size_t count;
    size_t rows[SJ_VALUE_RULES];
    bool are_former[SJ_VALUE_RULES];
    bool are_withdrawn[SJ_VALUE_RULES];
} sj_value_rules_past;

/* sj_value_rules_remember stores the state of a list before rules are added. sj_value_rules_undo
 * withdraws the added rules, because their policy was refused. They keep their indexes and match
 * nothing until a policy asks for them again. */
void sj_value_rules_remember(const sj_value_rules *rules, sj_value_rules_past *past);
void sj_value_rules_undo(sj_value_rules *rules, const sj_value_rules_past *past);

/* True if one of the rules changes calls; NULL is the empty list. */
bool sj_value_rules_change(const sj_value_rules *rules);

/* True if one of the rules is typed; NULL is the empty list. */
bool sj_value_rules_ask_types(const sj_value_rules *rules);

/* Copies the patterns of functions whose texts a policy leaves out. Call it before the list is in
 * use. Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_value_rules_redact(sj_value_rules *rules, const sj_redaction *redaction);

/* Returns the rules that name a function. */
sj_rule_set sj_value_rules_named(const sj_value_rules *rules, const char *symbol);

/* Returns the rules that a function obeys: those that name it. If the function's texts are
 * redacted, leaves out rules that would read a text, and rules that let debug data choose the
 * values. */
sj_rule_set sj_value_rules_match(const sj_value_rules *rules, const char *symbol);

/* Returns the matched rules that methods of managed runtimes can obey. Excludes rules of
 * signatures, whose registers are those of the native convention, and rules that count memory but
 * do not measure CPU time. */
sj_rule_set sj_value_rules_of_managed(const sj_value_rules *rules, const sj_rule_set *matched);

/* Returns a bit for each position of a managed method whose value is recorded by its own type,
 * because a matched rule is typed. Excludes positions that other matched rules record without a
 * condition. Returns 0 if no rule is typed, or if a rule by signature matches: its positions have
 * another order. */
uint16_t sj_value_rules_own_positions(const sj_value_rules *rules, const sj_rule_set *matched);

/* Notes for a method of Mono or Java which of its values are stored by their own types. Call it
 * before any value arrives. Later calls for the same function do nothing. Returns SJ_ENOMEM if out
 * of memory. Thread-safe like sj_value_rules_set_typed. */
SJ_MUST_CHECK sj_status sj_value_rules_set_own(sj_value_rules *rules, uint32_t function,
                                               uint16_t positions);

/* Returns the matched rules without those that only record an argument after the last of
 * `parameters` parameters. */
sj_rule_set sj_value_rules_within(const sj_value_rules *rules, const sj_rule_set *matched,
                                  uint32_t parameters);

/* Returns the matched rules for which existing plans have not been checked. */
sj_rule_set sj_value_rules_fresh_of(const sj_value_rules *rules, const sj_rule_set *matched);

/* True if one of the rules is about calls into libraries; NULL is the empty list. */
bool sj_value_rules_name_imports(const sj_value_rules *rules);

/* Returns the matched rules that record a value at the exit: typed rules, rules about a result or
 * errno, and rules with a condition that only the exit decides. Excludes rules that change
 * calls. */
sj_rule_set sj_value_rules_results_of(const sj_value_rules *rules, const sj_rule_set *matched);

/* Counts a recorded function for the matched rules about calls into libraries that would change its
 * result. */
void sj_value_rules_count_unreached(sj_value_rules *rules, const sj_rule_set *matched);

/* Returns the typed ones of the matched rules; none for methods of Objective-C. */
sj_rule_set sj_value_rules_typed_of(const sj_value_rules *rules, const sj_rule_set *matched,
                                    const char *symbol);

/* True if one of the matched rules measures CPU time. */
bool sj_value_rules_measure_cpu(const sj_value_rules *rules, const sj_rule_set *matched);
/* True if one of the matched rules counts what calls allocate and free. */
bool sj_value_rules_measure_memory(const sj_value_rules *rules, const sj_rule_set *matched);

/* True if one of all rules counts memory; NULL is the empty list. */
bool sj_value_rules_count_memory(const sj_value_rules *rules);

/* Allocates the table of types if there is none. Only one thread may call this function, but other
 * threads may read the list meanwhile. Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_value_rules_need_types(sj_value_rules *rules);

/* sj_value_rules_set_typed stores and owns the types of a function, before any of its values
 * arrives. It frees them if the function has types already, or if there is no table of types.
 * sj_value_rules_typed borrows them; NULL: none. Thread-safe. */
void sj_value_rules_set_typed(sj_value_rules *rules, uint32_t function, sj_typed_function *typed);
const sj_typed_function *sj_value_rules_typed(const sj_value_rules *rules, uint32_t function);

/* True if one of the matched rules already records values of a function under positions that differ
 * from the positions in the debug data. */
bool sj_value_rules_are_numbered(const sj_value_rules *rules, const sj_rule_set *matched);

/* Counts a function for each rule of `refused`. Typed rules are refused because of
 * sj_value_rules_are_numbered; other rules are refused because the function has types already. */
void sj_value_rules_count_settled(sj_value_rules *rules, const sj_rule_set *refused);

/* Returns the matched rules whose positions differ from the positions in the debug data. */
sj_rule_set sj_value_rules_numbered_of(const sj_value_rules *rules, const sj_rule_set *matched);

/* Counts for typed rules whether the types of a function are known, and the state of its module's
 * split debug data. */
void sj_value_rules_count_types(sj_value_rules *rules, const sj_rule_set *typed, bool is_found,
                                sj_split_state split);

/* Counts a method of Mono or Java for the matched rules. Typed rules count it as found, or as
 * settled if no value is recorded by its own type. Rules that count memory count it as missing,
 * because only native functions obey them. Call it once per method. */
void sj_value_rules_count_managed(sj_value_rules *rules, const sj_rule_set *matched);

/* Converts the content of a place to a value to store. `from` has the place as its descriptor. The
 * text of the result is in `from`, in `typed`, or in `number`. Returns false if the place does not
 * contain the value. */
enum { SJ_TYPED_NUMBER_BYTES = SJ_LONG_DOUBLE_TEXT_BYTES };
bool sj_typed_value_convert(const sj_typed_value *typed, const sj_block_value *from,
                            sj_block_value *value, char number[SJ_TYPED_NUMBER_BYTES]);

/* True if one of the matched rules sets results or skips calls. */
bool sj_value_rules_decide_calls(const sj_value_rules *rules, const sj_rule_set *matched);

/* Appends to `descriptors`, of which `used` are set, the places that must be recorded for the
 * matched rules, each once. Unused elements become 0. */
void sj_value_rules_list(const sj_value_rules *rules, const sj_rule_set *matched,
                         uint8_t *descriptors, size_t used, size_t capacity);

/* True if a function with these places records a value. */
bool sj_value_places_have(const uint8_t places[SJ_PLACES_PER_FUNCTION], uint8_t place);

/* True if the places of a function include the places of a rule, with at least its limit of texts.
 * */
bool sj_value_rules_have_capacity(const sj_value_rules *rules, size_t rule,
                                  const uint8_t places[SJ_PLACES_PER_FUNCTION]);

/* Counts for typed rules a function that has values in its debug data for which capacity is
 * missing. */
void sj_value_rules_count_crowded_types(sj_value_rules *rules, const sj_rule_set *typed);

/* Counts a function for each matched rule whose value is missing in `places`, or whose text is too
 * short there or has another length. The parser has checked rules with the same pattern. Rules with
 * different patterns can match the same function. */
void sj_value_rules_count_crowded(sj_value_rules *rules, const sj_rule_set *matched,
                                  const uint8_t places[SJ_PLACES_PER_FUNCTION]);

/* True if the rule is about this value, and the value meets the rule's own condition. */
bool sj_value_rule_holds(const sj_value_rule *rule, const sj_block_value *value);

/* True if the rule has a condition, so only some calls are hits. */
static inline bool sj_value_rule_has_condition(const sj_value_rule *rule)
{
    return rule->own.comparison != SJ_VALUE_ALWAYS || rule->condition_count != 0;
}

/* True if only the exit can decide whether a call meets the rule. */
bool sj_value_rule_is_late(const sj_value_rule *rule);

/* True if a call meets all conditions of rule `number` on the whole call. Counts the call if it
 * meets all conditions except the one on its number. Thread-safe. */
bool sj_value_rules_meet(sj_value_rules *rules, uint32_t number, const sj_call_facts *facts);

/* True if a rule that does not change calls has conditions on the whole call; NULL is the empty
 * list. */
bool sj_value_rules_evaluate_calls(const sj_value_rules *rules);

/* Returns the rules whose condition on the caller names a function. */
sj_rule_set sj_value_rules_called_from(const sj_value_rules *rules, const char *symbol);

/* Notes that existing plans have been checked for all rules. */
void sj_value_rules_settle(sj_value_rules *rules);

/* The words that a policy uses. */
extern const char *const sj_value_kind_words[SJ_VALUE_RULE_KINDS];
extern const char *const sj_value_comparison_words[SJ_VALUE_COMPARISONS];

#endif
