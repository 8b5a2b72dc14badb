/* Changes that rules make to arguments and results. The recorder writes this table into a file of
 * the runtime directory, and agents map it. The recorder adds the functions of each module before
 * they are hooked. When it removes a function from a rule, or disables the table, that takes effect
 * with the next call. Agents write only the counters. */
#ifndef SJ_AGENT_ABI_CHANGES_H
#define SJ_AGENT_ABI_CHANGES_H

#include "agent/abi/machine.h"

#include <stdatomic.h>
#include <stdint.h>

#define SJ_CHANGES_NAME "changes"
#define SJ_CHANGES_MAGIC UINT64_C(0x36474e4843534a53) /* "SJSCHNG6" */

enum {
    SJ_CHANGE_RULES = 256, /* number of rules; a function has one bit for each rule */
    SJ_CHANGE_RULE_WORDS = SJ_CHANGE_RULES / 64,
    SJ_CHANGED_FUNCTIONS = 16 * 1024, /* capacity of the table; a power of 2 */
    SJ_CHANGES_PATH = 4096,
    SJ_CHANGE_THROWN_BYTES = 128, /* name of an exception's class, including its terminator */
    SJ_CHANGE_DATA_BYTES = 64,    /* bytes that a rule can write */
    SJ_CHANGE_MARK_BYTES = 64,    /* name of a mark, including its terminator */
    SJ_CHANGE_THREAD_BYTES = 16,  /* name of a thread, as in the kernel */
    SJ_CHANGE_CONDITIONS = 8,
    SJ_CHANGED_MOST = SJ_CHANGED_FUNCTIONS / 2
};

typedef enum sj_change_action {
    SJ_CHANGE_NOTHING = 0, /* only errno or a delay */
    SJ_CHANGE_SET = 1,     /* sets the target: an argument, or at the exit the result */
    SJ_CHANGE_RETURN = 2,  /* at the entry: the function returns the target at once */
    SJ_CHANGE_THROW = 3,   /* at the entry: throws an exception at once; Java methods only */
    SJ_CHANGE_WRITE = 4    /* writes bytes to the address in the target */
} sj_change_action;

/* Comparisons of integers, as in agent/policy/value_rules.h. */
typedef enum sj_change_comparison {
    SJ_CHANGE_ALWAYS = 0,
    SJ_CHANGE_EQUAL = 1,
    SJ_CHANGE_UNEQUAL = 2,
    SJ_CHANGE_LESS = 3,
    SJ_CHANGE_AT_MOST = 4,
    SJ_CHANGE_GREATER = 5,
    SJ_CHANGE_AT_LEAST = 6
} sj_change_comparison;

/* A further condition: on a register at the same entry or exit, on errno (at the exit; the
 * descriptor says so), on the thread's name (if `thread` is set), or on the caller. */
typedef struct sj_change_condition {
    uint8_t descriptor;
    uint8_t comparison; /* sj_change_comparison */
    uint8_t is_caller;  /* 1: the caller must be one that the rule names (`callers`) */
    char thread[SJ_CHANGE_THREAD_BYTES]; /* the whole name, or a prefix with * at the end */
    uint64_t operand;
} sj_change_condition;

typedef struct sj_change_rule {
    _Atomic uint32_t version; /* an uneven number while the recorder changes the rule */
    /* descriptor of the value to compare, whose record triggers the rule; 0: no rule here */
    uint8_t descriptor;
    uint8_t target;     /* descriptor of the value that the rule sets */
    uint8_t comparison; /* sj_change_comparison */
    uint8_t action;     /* sj_change_action */
    int32_t error;      /* errno afterwards; 0: unchanged */
    uint64_t operand;
    uint64_t bits;     /* the value to set */
    uint64_t delay_ns; /* 0: no delay */
    /* number of the first matching call that is changed; 0 or 1: all calls are */
    uint64_t from;
    uint64_t times;       /* maximum number of changed calls; 0: no limit */
    uint64_t one_in;      /* one matching call in this many is changed; 0 or 1: every call is */
    uint64_t until_ticks; /* 0: no time limit */
    sj_change_condition conditions[SJ_CHANGE_CONDITIONS];
    uint32_t condition_count;
    uint32_t data_bytes;
    uint8_t data[SJ_CHANGE_DATA_BYTES];
    char begin_mark[SJ_CHANGE_MARK_BYTES]; /* the rule is active from this mark on; "": at once */
    char end_mark[SJ_CHANGE_MARK_BYTES];   /* until this mark; each process has its own marks */
    char thrown[SJ_CHANGE_THROWN_BYTES];   /* class of the exception; "": none */
    /* 1: `begin_mark` was set from outside the program (`sojourn mark`), which makes the rule
     * active in all processes */
    _Atomic uint32_t is_between;
    _Atomic uint64_t met; /* calls that met all conditions */
    /* calls that met all conditions and were changed, as `from`, `one_in` and `times` say */
    _Atomic uint64_t fired;
    _Atomic uint64_t unfit; /* calls of methods whose type does not accept the value: unchanged */
} sj_change_rule;

typedef struct sj_changed_function {
    _Atomic uint32_t function; /* 0: free */
    /* 1: nothing except the rules below needs the function's values, and each of these rules has a
     * condition on them. So a value that matches no rule is not recorded. */
    _Atomic uint32_t is_quiet;
    _Atomic uint64_t rules[SJ_CHANGE_RULE_WORDS]; /* bits of the rules about its calls */
    /* bits of the rules about calls that it makes */
    _Atomic uint64_t callers[SJ_CHANGE_RULE_WORDS];
} sj_changed_function;

typedef struct sj_changes {
    uint64_t magic;
    _Atomic uint32_t is_on;
    uint32_t recorder; /* pid; the table is disabled when the recorder is gone */
    uint64_t grace_ticks;
    /* Time at which the recorder was last known to run. After `grace_ticks` the agent checks for
     * the recorder; if it may not make system calls, it assumes that the recorder is gone. */
    _Atomic uint64_t alive_ticks;
    char program[SJ_CHANGES_PATH]; /* /proc/self/exe of the processes that the rules are about */
    sj_change_rule rules[SJ_CHANGE_RULES];
    sj_changed_function functions[SJ_CHANGED_FUNCTIONS];
} sj_changes;

/* Returns the index at which the search for a function starts. */
static inline uint32_t sj_changes_place(uint32_t function)
{
    return function * UINT32_C(0x9e3779b1) & (SJ_CHANGED_FUNCTIONS - 1);
}

#endif
