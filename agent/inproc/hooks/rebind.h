/* Rebinding: makes every loaded module's references to a dynamic symbol refer to a function of the
 * agent. */
#ifndef SJ_AGENT_INPROC_HOOKS_REBIND_H
#define SJ_AGENT_INPROC_HOOKS_REBIND_H

#include "agent/inproc/hooks/dynamic_view.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct sj_rebinding {
    const char *name;
    uint64_t real; /* address of the function of that name; 0: this element is ignored */
    uint64_t replacement;
} sj_rebinding;

/* Numbers of slots. */
typedef struct sj_rebound {
    uint32_t changed;
    uint32_t not_relocated; /* slots that the loader has not relocated yet */
} sj_rebound;

/* Returns the address of the exported function `name` in the first loaded module that defines it,
 * or 0 if none does. Does not allocate and does not run code of the program. Takes the loader's
 * lock. */
uint64_t sj_rebind_find(const char *name);

/* Writes the replacements into the slots of every loaded module except the agent. With `restore`,
 * writes the real functions into slots that hold a replacement. Slots are JUMP_SLOT, GLOB_DAT and
 * absolute words, also those that are read-only after relocation. Skips slots that already hold the
 * wanted value or are not relocated yet, so it may be repeated. Each slot changes with one store,
 * so threads may run. Returns the number of changed slots. Takes the loader's lock. */
uint32_t sj_rebind(const sj_rebinding *rebindings, uint32_t count, bool restore);

/* Does the same as sj_rebind for one module, and also counts the slots that are not relocated yet.
 * The caller holds the loader's lock. */
sj_rebound sj_rebind_module(const sj_dynamic_view *view, const sj_rebinding *rebindings,
                            uint32_t count, bool restore);

#endif
