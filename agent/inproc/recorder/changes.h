/* Rules that change arguments and results (agent/abi/changes.h), as used by probes. */
#ifndef SJ_AGENT_INPROC_RECORDER_CHANGES_H
#define SJ_AGENT_INPROC_RECORDER_CHANGES_H

#include "agent/abi/changes.h"

#include <stdbool.h>

/* The table of rules; NULL: there are no rules. */
extern sj_changes *sj_recorder_changes __attribute__((visibility("hidden")));

/* sj_recorder_map_changes maps the table in the runtime directory, if there is one.
 * sj_recorder_unmap_changes unmaps it; no other thread may be in a probe. */
void sj_recorder_map_changes(const char *directory);
void sj_recorder_unmap_changes(void);

/* The effect of a rule on a value that has just been recorded. */
typedef struct sj_due_change {
    uint32_t rule;    /* index of the rule */
    uint8_t action;   /* sj_change_action */
    uint8_t target;   /* sj_value_descriptor */
    int32_t error;    /* errno to set after everything else; 0: none */
    uint64_t bits;    /* the value to set */
    uint32_t version; /* version of the rule when it was judged */
} sj_due_change;

/* Copies the bytes that a rule writes. Returns how many; 0: the rule has changed since it was
 * judged. */
uint32_t sj_recorder_due_bytes(const sj_due_change *due, uint8_t bytes[SJ_CHANGE_DATA_BYTES]);

/* The other values of a call, for conditions on them. `read` reads the register of a descriptor, or
 * errno, at the same moment. It returns false if that value cannot be read; conditions on the value
 * then do not hold. */
typedef struct sj_judged_call {
    bool (*read)(const void *context, uint8_t descriptor, uint64_t *bits);
    const void *context;
    uint64_t return_address; /* 0: unknown */
} sj_judged_call;

/* True if a rule about this function has a condition on its caller. */
bool sj_recorder_is_asked_caller(uint32_t function);

/* True if a rule applies to a value, which is narrowed to its kind; then writes the rule's change
 * to `*due`. Counts the call and waits for the rule's delay. sj_recorder_changes must not be NULL.
 * If `call` is NULL, conditions on other values do not hold. Takes no lock and allocates nothing.
 * Async-signal-safe. */
bool sj_recorder_judge(uint32_t function, uint8_t descriptor, uint64_t bits,
                       const sj_judged_call *call, sj_due_change *due);

/* The type of a number that a rule sets. */
typedef struct sj_changed_number {
    bool is_real;
    uint32_t bytes;
    /* maximum of the unsigned type of this size; 1 or less: negative numbers do not fit */
    uint64_t most;
} sj_changed_number;

/* sj_recorder_change_fits returns true if the value that a rule sets fits a number's type. Reals
 * must have the same size as the number. A whole number fits any whole type of 64 bits. A smaller
 * type needs a rule of at most 32 bits and a value within the type.
 *
 * sj_recorder_change_is_unfit counts a call that stays unchanged because its change does not fit.
 * Both are async-signal-safe. */
bool sj_recorder_change_fits(const sj_due_change *due, sj_changed_number number);
void sj_recorder_change_is_unfit(const sj_due_change *due);

/* True if a value, narrowed to its kind, need not be recorded. This is so if only rules that change
 * calls need the value, and it meets the condition of none of these rules. Async-signal-safe. */
bool sj_recorder_is_idle(uint32_t function, uint8_t descriptor, uint64_t bits);

/* Notes that the program has passed a mark, at which rules may begin or end. */
void sj_recorder_change_at_mark(const char *name, bool end);

/* Sets the program's errno, unless `error` is 0. */
void sj_recorder_set_error(int32_t error);

#endif
