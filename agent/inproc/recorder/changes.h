/* Rules that change arguments and results (agent/abi/changes.h), as probes see them. */
#ifndef SJ_AGENT_INPROC_RECORDER_CHANGES_H
#define SJ_AGENT_INPROC_RECORDER_CHANGES_H

#include "agent/abi/changes.h"

#include <stdbool.h>

/* The table; NULL: there are no rules. */
extern sj_changes *sj_recorder_changes __attribute__((visibility("hidden")));

/* sj_recorder_map_changes maps the table of the runtime directory, if there is one, and
 * sj_recorder_unmap_changes gives it back: no other thread is in a probe. */
void sj_recorder_map_changes(const char *directory);
void sj_recorder_unmap_changes(void);

/* What is to be done with a value that has just been recorded. */
typedef struct sj_due_change {
    uint32_t rule;    /* its place */
    uint8_t action;   /* sj_change_action */
    uint8_t target;   /* sj_value_descriptor */
    int32_t error;    /* errno to set at the very end; 0: none */
    uint64_t bits;    /* what is set */
    uint32_t version; /* of the rule that is due */
} sj_due_change;

/* sj_recorder_due_bytes copies the bytes that a rule writes; returns how many, 0: the rule is not
 * what it was any more. */
uint32_t sj_recorder_due_bytes(const sj_due_change *due, uint8_t bytes[SJ_CHANGE_DATA_BYTES]);

/* Reads what else a call has at this moment: the register of a descriptor, errno. NULL where that
 * is not possible; then no condition on it holds. */
typedef struct sj_judged_call {
    bool (*read)(const void *context, uint8_t descriptor, uint64_t *bits);
    const void *context;
    uint64_t return_address; /* 0: not known */
} sj_judged_call;

/* sj_recorder_is_asked_caller: a rule has a condition that names a function as the caller. */
bool sj_recorder_is_asked_caller(uint32_t function);

/* sj_recorder_judge returns whether a rule fires for a value, narrowed to its kind, and counts it.
 * The delay has passed then. Without a lock or an allocation; async-signal-safe. */
bool sj_recorder_judge(uint32_t function, uint8_t descriptor, uint64_t bits,
                       const sj_judged_call *call, sj_due_change *due);

/* What a number can be that a rule sets. */
typedef struct sj_changed_number {
    bool is_real;
    uint32_t bytes;
    uint64_t most; /* of a whole number without a sign; what is smaller than 2 has no sign */
} sj_changed_number;

/* sj_recorder_change_fits returns whether what a rule sets is of a number's type: of 64 bits or
 * fewer as the rule says, with or without a point, and no more than the type holds.
 * sj_recorder_change_is_unfit counts a call that stays as it is because that is not so. Both are
 * async-signal-safe. */
bool sj_recorder_change_fits(const sj_due_change *due, sj_changed_number number);
void sj_recorder_change_is_unfit(const sj_due_change *due);

/* sj_recorder_is_idle: a value, narrowed to its kind, is asked for by rules that change calls
 * alone, and is none that one of them is about: it need not be recorded. Async-signal-safe. */
bool sj_recorder_is_idle(uint32_t function, uint8_t descriptor, uint64_t bits);

/* sj_recorder_change_at_mark: the program has passed a mark, at which rules may begin or end. */
void sj_recorder_change_at_mark(const char *name, bool end);

/* sj_recorder_set_error sets the program's errno. */
void sj_recorder_set_error(int32_t error);

#endif
