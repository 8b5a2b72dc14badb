/* Finds code that may read the status flags (dead_flags.c). The search needs all code of the text,
 * and the import slots. */
#ifndef SJ_AGENT_PLANNER_FLAGS_H
#define SJ_AGENT_PLANNER_FLAGS_H

#include "agent/planner/module.h"

typedef enum sj_slot_kind {
    SJ_SLOT_ANY, /* the function is unknown, for example because a resolver chooses it */
    SJ_SLOT_OWN, /* a function of this module; the loader may choose one of another module instead
                  */
    SJ_SLOT_OTHER_MODULE /* a function of another module */
} sj_slot_kind;

/* A slot that the loader fills with the address of a function. */
typedef struct sj_import_slot {
    uint64_t address;
    uint64_t function; /* for SJ_SLOT_OWN: its address */
    uint8_t kind;      /* sj_slot_kind */
} sj_import_slot;

typedef struct sj_import_slots {
    sj_import_slot *items; /* sorted by address; the caller frees them */
    size_t count;
    size_t capacity;
} sj_import_slots;

/* Reads the slots of a module. Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_import_slots_read(const sj_module *module, sj_import_slots *slots);

/* Returns the slot that a call or jump reads its target from, or NULL if it does not use a slot. */
const sj_import_slot *sj_import_slot_of(const sj_module *module, const sj_import_slots *slots,
                                        const sj_code *code);

/* Appends the instructions of text between two ranges to module->codes. Returns SJ_ENOMEM if out of
 * memory. */
SJ_MUST_CHECK sj_status sj_read_unowned_code(sj_module *module, const sj_decoder *decoder,
                                             uint32_t start, uint32_t end);

/* Returns the instruction directly after another one, also outside of all ranges. Returns NULL if
 * there is none. */
const sj_code *sj_any_code_behind(const sj_module *module, const sj_code *code);

/* True if a call ends its range and alignment follows. Such a call never returns. */
bool sj_is_last_call(const sj_module *module, const sj_code *code);

/* Bits that say how code uses the flags. 0: the code overwrites the flags before it reads them. */
typedef enum sj_flags_use {
    SJ_USE_READ = 1,     /* code reads the flags, or cannot be decoded */
    SJ_USE_RETURNED = 2, /* the function returns with the flags */
    SJ_USE_POINTED = 4,  /* the flags reach a function that is called by pointer */
    SJ_USE_GONE = 8      /* the flags reach another module */
} sj_flags_use;

/* Data about a module for the search. Members that are not known yet are zero. */
typedef struct sj_flags_view {
    const sj_module *module;
    const sj_import_slots *slots;
    const uint8_t
        *label_uses; /* for each function, the uses at all targets of its switches; NULL: unknown */
    uint32_t labels_of; /* function whose switches are ignored, or SJ_CODE_RANGE_NONE */
} sj_flags_view;

/* Returns how the code from an instruction on uses the flags (sj_flags_use). */
uint32_t sj_flags_uses(const sj_flags_view *view, const sj_code *code);

#endif
