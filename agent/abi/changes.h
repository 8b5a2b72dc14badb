/* Changes: what rules make of arguments and results, in a file of the runtime directory that the
 * recorder writes and agents map. The recorder adds the functions of each module before their
 * hooks are made; taking a rule's function out, or the whole table off, takes effect with the next
 * call. Only the counters are the agents'. */
#ifndef SJ_AGENT_ABI_CHANGES_H
#define SJ_AGENT_ABI_CHANGES_H

#include "agent/abi/machine.h"

#include <stdatomic.h>
#include <stdint.h>

#define SJ_CHANGES_NAME "changes"
#define SJ_CHANGES_MAGIC UINT64_C(0x36474e4843534a53) /* "SJSCHNG6" */

enum {
    SJ_CHANGE_RULES = 256, /* bits of a function: places among the policy's rules */
    SJ_CHANGE_RULE_WORDS = SJ_CHANGE_RULES / 64,
    SJ_CHANGED_FUNCTIONS = 16 * 1024, /* room; a power of 2 */
    SJ_CHANGES_PATH = 4096,
    SJ_CHANGE_THROWN_BYTES = 128, /* of the name of an exception's class, with its end */
    SJ_CHANGE_DATA_BYTES = 64,    /* that a rule writes at most */
    SJ_CHANGE_MARK_BYTES = 64,    /* of a mark's name, with its end */
    SJ_CHANGE_THREAD_BYTES = 16,  /* of a thread's, as the kernel has it */
    SJ_CHANGE_CONDITIONS = 8,
    SJ_CHANGED_MOST = SJ_CHANGED_FUNCTIONS / 2
};

typedef enum sj_change_action {
    SJ_CHANGE_NOTHING = 0, /* errno or a delay only */
    SJ_CHANGE_SET = 1,     /* the target is set: an argument, or at the exit the result */
    SJ_CHANGE_RETURN = 2,  /* at the entry: the function returns the target at once */
    SJ_CHANGE_THROW = 3,   /* at the entry: an exception is thrown at once; Java methods only */
    SJ_CHANGE_WRITE = 4    /* bytes are written where the target leads to */
} sj_change_action;

/* Comparisons of whole numbers, as in agent/policy/value_rules.h. */
typedef enum sj_change_comparison {
    SJ_CHANGE_ALWAYS = 0,
    SJ_CHANGE_EQUAL = 1,
    SJ_CHANGE_UNEQUAL = 2,
    SJ_CHANGE_LESS = 3,
    SJ_CHANGE_AT_MOST = 4,
    SJ_CHANGE_GREATER = 5,
    SJ_CHANGE_AT_LEAST = 6
} sj_change_comparison;

/* A further condition: on a register of the same moment, on errno (at the exit; the descriptor says
 * so), on the thread's name (`thread` is set) or on the caller. */
typedef struct sj_change_condition {
    uint8_t descriptor;
    uint8_t comparison;                  /* sj_change_comparison */
    uint8_t is_caller;                   /* 1: it is one of those that the rule names (`callers`) */
    char thread[SJ_CHANGE_THREAD_BYTES]; /* whole, or with a * at its end */
    uint64_t operand;
} sj_change_condition;

typedef struct sj_change_rule {
    _Atomic uint32_t version; /* odd while the recorder writes the rest, which it may change */
    uint8_t descriptor;       /* of the value that is judged, whose recording is the occasion */
    uint8_t target;           /* of what is set */
    uint8_t comparison;       /* sj_change_comparison */
    uint8_t action;           /* sj_change_action; in a place without a rule, `descriptor` is 0 */
    int32_t error;            /* errno afterwards; 0: it stays */
    uint64_t operand;
    uint64_t bits;     /* what is set */
    uint64_t delay_ns; /* 0: none */
    uint64_t from;     /* the first call that counts, of those that meet the condition; 0, 1: all */
    uint64_t times;    /* at most; 0: no limit */
    uint64_t one_in;   /* 0, 1: each */
    uint64_t until_ticks; /* 0: as long as the table */
    sj_change_condition conditions[SJ_CHANGE_CONDITIONS];
    uint32_t condition_count;
    uint32_t data_bytes;
    uint8_t data[SJ_CHANGE_DATA_BYTES];
    char begin_mark[SJ_CHANGE_MARK_BYTES]; /* in force from this mark on; "": at once */
    char end_mark[SJ_CHANGE_MARK_BYTES];   /* to this one: each process has its own marks */
    char thrown[SJ_CHANGE_THROWN_BYTES];   /* class of the exception; "": none */
    _Atomic uint32_t is_between;           /* 1: for all of them, by marks of the command line */
    _Atomic uint64_t met;
    _Atomic uint64_t fired;
    _Atomic uint64_t unfit; /* calls of methods whose type what is set is not of: unchanged */
} sj_change_rule;

typedef struct sj_changed_function {
    _Atomic uint32_t function; /* 0: free */
    _Atomic uint32_t is_quiet; /* 1: its values are for these rules alone, which have conditions on
                                  them: what meets none need not be recorded */
    _Atomic uint64_t rules[SJ_CHANGE_RULE_WORDS];   /* bits: those about its calls */
    _Atomic uint64_t callers[SJ_CHANGE_RULE_WORDS]; /* bits: those about calls by it */
} sj_changed_function;

typedef struct sj_changes {
    uint64_t magic;
    _Atomic uint32_t is_on;
    uint32_t recorder; /* pid: a table whose recorder is gone is off */
    uint64_t grace_ticks;
    _Atomic uint64_t alive_ticks;  /* when the recorder was there last; after the grace it is looked
                                      for, or, without system calls, taken for gone */
    char program[SJ_CHANGES_PATH]; /* /proc/self/exe of the processes that rules are about */
    sj_change_rule rules[SJ_CHANGE_RULES];
    sj_changed_function functions[SJ_CHANGED_FUNCTIONS];
} sj_changes;

/* sj_changes_place returns where the search for a function begins. */
static inline uint32_t sj_changes_place(uint32_t function)
{
    return function * UINT32_C(0x9e3779b1) & (SJ_CHANGED_FUNCTIONS - 1);
}

#endif
