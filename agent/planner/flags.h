/* Finds code that may read the status flags (dead_flags.c). That needs all code of the text, and
 * the slots that lead to other modules. */
#ifndef SJ_AGENT_PLANNER_FLAGS_H
#define SJ_AGENT_PLANNER_FLAGS_H

#include "agent/planner/module.h"

typedef enum sj_slot_kind {
    SJ_SLOT_ANY,         /* a resolver chooses the function */
    SJ_SLOT_OWN,         /* a function of this module, or its replacement from another module */
    SJ_SLOT_OTHER_MODULE /* a function of another module */
} sj_slot_kind;

/* A slot that the loader fills with the address of a function. */
typedef struct sj_import_slot {
    uint64_t address;
    uint64_t function; /* for SJ_SLOT_OWN: its address */
    uint8_t kind;      /* sj_slot_kind */
} sj_import_slot;

typedef struct sj_import_slots {
    sj_import_slot *items; /* sorted by address; freed by the owner */
    size_t count;
    size_t capacity;
} sj_import_slots;

/* Reads the slots of a module. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_import_slots_read(const sj_module *module, sj_import_slots *slots);

/* Returns the slot that a call or jump goes through; NULL: none. */
const sj_import_slot *sj_import_slot_of(const sj_module *module, const sj_import_slots *slots,
                                        const sj_code *code);

/* Disassembles text between two ranges into module->codes. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_read_unowned_code(sj_module *module, const sj_decoder *decoder,
                                             uint32_t start, uint32_t end);

/* Returns the instruction after another one, in a range or not; NULL: none. */
const sj_code *sj_any_code_behind(const sj_module *module, const sj_code *code);

/* True if a call ends its range and alignment follows: it never returns. */
bool sj_is_last_call(const sj_module *module, const sj_code *code);

/* Uses of the flags after control continues at a place. 0: they are overwritten. */
typedef enum sj_flags_use {
    SJ_USE_READ = 1,     /* read, or used by code that is not understood */
    SJ_USE_RETURNED = 2, /* the function returns with them */
    SJ_USE_POINTED = 4,  /* they reach functions called by pointer */
    SJ_USE_GONE = 8      /* they reach another module */
} sj_flags_use;

/* Data about the module for following flags; unknown members are zero. */
typedef struct sj_flags_view {
    const sj_module *module;
    const sj_import_slots *slots;
    const uint8_t *label_uses; /* by function: uses at all targets of its switches */
    uint32_t labels_of;        /* function whose switches are ignored, or SJ_CODE_RANGE_NONE */
} sj_flags_view;

/* Returns the uses of all flags from an instruction on. */
uint32_t sj_flags_uses(const sj_flags_view *view, const sj_code *code);

#endif
