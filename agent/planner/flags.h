/* Which code may read the status flags (dead_flags.c), and what it takes to see that: all code of
 * the text, and which slots lead to other modules. */
#ifndef SJ_AGENT_PLANNER_FLAGS_H
#define SJ_AGENT_PLANNER_FLAGS_H

#include "agent/planner/module.h"

typedef enum sj_slot_kind {
    SJ_SLOT_ANY,         /* what a resolver picks */
    SJ_SLOT_OWN,         /* the function of this module, or another module's in its place */
    SJ_SLOT_OTHER_MODULE /* a function of another module */
} sj_slot_kind;

/* A place that the loader fills with the address of a function. */
typedef struct sj_import_slot {
    uint64_t address;
    uint64_t function; /* of SJ_SLOT_OWN: its address */
    uint8_t kind;      /* sj_slot_kind */
} sj_import_slot;

typedef struct sj_import_slots {
    sj_import_slot *items; /* sorted by address; the owner frees them */
    size_t count;
    size_t capacity;
} sj_import_slots;

/* SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_import_slots_read(const sj_module *module, sj_import_slots *slots);

/* sj_import_slot_of returns the slot that a call or jump goes through, or NULL: it has none. */
const sj_import_slot *sj_import_slot_of(const sj_module *module, const sj_import_slots *slots,
                                        const sj_code *code);

/* sj_read_unowned_code disassembles text between two ranges into module->codes. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_read_unowned_code(sj_module *module, const sj_decoder *decoder,
                                             uint32_t start, uint32_t end);

/* sj_any_code_behind is what an instruction goes on to, in a range or not; NULL: there is none. */
const sj_code *sj_any_code_behind(const sj_module *module, const sj_code *code);

/* sj_is_last_call returns whether a call ends its range and alignment follows: it never returns.
 */
bool sj_is_last_call(const sj_module *module, const sj_code *code);

/* What may happen to flags when control goes on somewhere; none of it: they are overwritten. */
typedef enum sj_flags_use {
    SJ_USE_READ = 1,     /* or not understood */
    SJ_USE_RETURNED = 2, /* the function returns with them */
    SJ_USE_POINTED = 4,  /* they go to whatever is called by pointer */
    SJ_USE_GONE = 8      /* they go to another module */
} sj_flags_use;

/* What is known of the module when flags are followed; zeroed as far as it is not. */
typedef struct sj_flags_view {
    const sj_module *module;
    const sj_import_slots *slots;
    const uint8_t *label_uses; /* by function: of all places that its switches go on to */
    uint32_t labels_of;        /* function whose switches do not count, or SJ_CODE_RANGE_NONE */
} sj_flags_view;

/* sj_flags_uses returns the uses of all flags from an instruction on. */
uint32_t sj_flags_uses(const sj_flags_view *view, const sj_code *code);

#endif
