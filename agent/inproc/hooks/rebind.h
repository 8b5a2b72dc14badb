/* Rebinding: binds every loaded module's references to a dynamic symbol to a function of ours. */
#ifndef SJ_AGENT_INPROC_HOOKS_REBIND_H
#define SJ_AGENT_INPROC_HOOKS_REBIND_H

#include "agent/inproc/hooks/dynamic_view.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct sj_rebinding {
    const char *name;
    uint64_t real; /* the function of that name; 0: none, the entry is skipped */
    uint64_t replacement;
} sj_rebinding;

/* What became of the slots of these names. */
typedef struct sj_rebound {
    uint32_t changed;
    uint32_t not_relocated; /* they hold no address yet */
} sj_rebound;

/* sj_rebind_find returns the address of a function that some loaded module defines and exports; 0
 * when none does. Neither allocates nor runs code of the program. Takes the loader's lock. */
uint64_t sj_rebind_find(const char *name);

/* sj_rebind changes the slots (JUMP_SLOT, GLOB_DAT and absolute words, read-only after relocation
 * or not) of every loaded module but the agent: to the replacements, or with `restore` from them to
 * the real functions. May be repeated; slots that hold the wanted value, or no address yet, are
 * skipped. Each slot changes with one store, so threads may run. Returns the number of slots
 * changed. Takes the loader's lock. */
uint32_t sj_rebind(const sj_rebinding *rebindings, uint32_t count, bool restore);

/* sj_rebind_module is sj_rebind for one module. Under the loader's lock. */
sj_rebound sj_rebind_module(const sj_dynamic_view *view, const sj_rebinding *rebindings,
                            uint32_t count, bool restore);

#endif
