/* Hooks: applies a plan to a loaded module, and undoes it.
 *
 * The agent checks the plan and generates its stubs near the module. Then it changes the module's
 * text. A function gets either all of its patches or none. A function is reported and not patched
 * in two cases: its bytes in memory differ from the plan's, or a jump's displacement does not
 * reach. No thread may run the bytes to be patched meanwhile. So plans are applied at program start
 * and while the loader maps a module. */
#ifndef SJ_AGENT_INPROC_HOOKS_HOOKS_H
#define SJ_AGENT_INPROC_HOOKS_HOOKS_H

#include "agent/abi/hooked_module.h"
#include "agent/abi/link.h"
#include "agent/abi/plan.h"
#include "proto/base/status.h"

#include <stdbool.h>
#include <stddef.h>

struct sj_code_emitter; /* arch.h */

typedef struct sj_hooks_report {
    uint32_t hooked; /* number of functions */
    uint32_t failed; /* number of functions that the policy wants and that are not hooked */
    uint32_t stub_bytes;
    sj_link_failure *failures; /* the caller's array for the first `failures_capacity` failures */
    uint32_t failures_capacity;
    bool is_movable; /* another process with the same layout could use the stubs (ready.h) */
    /* One byte for each function of the plan, set to 1 if the function is hooked. May be NULL. */
    uint8_t *marks;
} sj_hooks_report;

/* Applies the plan file `bytes` to the module at `bias`. The id of function[i] is `first_function`
 * + i; a function of generated code has its own id. On error, no text has changed. Errors:
 *   SJ_ECORRUPT, SJ_EVERSION  the plan is invalid
 *   SJ_EUNSUPPORTED           the plan is for another machine
 *   SJ_EINVAL                 `first_function` is 0, or an id is too large
 *   SJ_ENOMEM                 out of memory
 *   SJ_EPERM                  the text cannot be written */
SJ_MUST_CHECK sj_status sj_hooks_apply(const void *bytes, size_t size_bytes, uint64_t bias,
                                       uint32_t first_function, sj_hooked_module *module,
                                       sj_hooks_report *report);

/* Like sj_hooks_apply, but does not write the text. The module's changes have `written` 0. A tracer
 * writes them while no thread runs. Returns the same errors. */
SJ_MUST_CHECK sj_status sj_hooks_prepare(const void *bytes, size_t size_bytes, uint64_t bias,
                                         uint32_t first_function, sj_hooked_module *module,
                                         sj_hooks_report *report);

/* Code that functions run at their entries, from the caller of sj_hooks_apply_entries. Calls of
 * these functions are not recorded. */
typedef struct sj_hooks_entries {
    void *context;
    /* Emits the code for the entry of function `index` of the plan. sj_hooks_apply_entries calls it
     * once to measure and once to write. Both must emit the same number of bytes. At the code's
     * start, arguments are in their registers, and the return address is on top of the stack. The
     * code may change the flags and all caller-saved registers except those of arguments. The
     * function's own instructions run after the code's end. */
    void (*emit)(void *context, struct sj_code_emitter *emitter, uint32_t index);
    uint32_t function; /* value of the changes' `function` member, instead of a function's id */
    bool prepare_only; /* does not write the text, like sj_hooks_prepare */
} sj_hooks_entries;

/* Like sj_hooks_apply, but functions run the caller's code at their entries, and calls are not
 * recorded. Later plans cannot hook these functions (SJ_SKIP_CODE_DIFFERS). Returns the same
 * errors, and SJ_ELIMIT, changing nothing, if the table of such functions has no space for all
 * patches of the plan. */
SJ_MUST_CHECK sj_status sj_hooks_apply_entries(const void *bytes, size_t size_bytes, uint64_t bias,
                                               const sj_hooks_entries *heap_entries,
                                               sj_hooked_module *module, sj_hooks_report *report);

/* Makes this process refuse patches that cross a page boundary from now on. A tracer that writes or
 * restores such a patch may be killed between the two pages. Called when a tracer attaches to the
 * process, before a plan is applied. */
void sj_hooks_avoid_page_crossings(void);

/* Announces that dispatched calls will be recorded, too (hooks/dispatch.h). Entries of plans that
 * are applied from now on check whether a dispatched call has jumped to them, and end it. */
void sj_hooks_expect_dispatch(void);

bool sj_hooks_expects_dispatch(void);

/* Writes the stubs' addresses into the import slots of a relocated module. Resolves lazily bound
 * imports now. Imports without a definition are reported as not hooked (SJ_SKIP_UNDEFINED), unless
 * `report` is NULL. Takes the loader's lock. The loader may allocate if a symbol is not in the
 * global scope. */
void sj_library_calls_bind(sj_hooked_module *module, sj_hooks_report *report);

/* Like sj_library_calls_bind, for a running program. Does not write the slots: the changes have
 * `written` 0, and a tracer writes them. Takes only the lock of dl_iterate_phdr. Some imports stay
 * unchanged and are reported as not hooked (SJ_SKIP_NOT_BOUND):
 *   * only the loader could resolve them (definition.h)
 *   * `may_dispatch_to` refuses their target */
void sj_library_calls_prepare(sj_hooked_module *module, bool (*may_dispatch_to)(uint64_t target),
                              sj_hooks_report *report);

/* Makes the loader call `entry` before it initialises a module that it is mapping now. `entry`
 * calls sj_library_calls_bind. Imports of a module without initialisers stay unchanged and are
 * reported as not hooked (SJ_SKIP_NOT_BOUND). Weak imports without a definition are reported, too
 * (SJ_SKIP_UNDEFINED). */
void sj_library_calls_defer(sj_hooked_module *module, void (*entry)(void), sj_hooks_report *report);

/* Lets the initialisation of a deferred module continue with its imports unchanged. */
void sj_library_calls_release(sj_hooked_module *module);

/* True if the imports of a module wait for its initialisation. */
bool sj_library_calls_is_deferred(const sj_hooked_module *module);

/* Restores every byte of the module. The stubs stay mapped, because a thread may still run them.
 * Returns SJ_EPERM, and changes nothing, if the text cannot be written. */
SJ_MUST_CHECK sj_status sj_hooks_unpatch(sj_hooked_module *module);

/* Unmaps the stubs and frees the other data of a module that was unloaded or unpatched. No thread
 * may run its stubs any more. */
void sj_hooks_forget(sj_hooked_module *module);

/* Maps writable memory that a jump from any address in [low, high) can reach. Returns NULL if there
 * is none. */
void *sj_near_map(uint64_t low, uint64_t high, uint64_t bytes);

/* Unmaps the memory that was mapped for stubs of generated code and is still unused. */
void sj_near_release(void);

/* Replaces the first `bytes` bytes of the function at `address` by a jump to `target`, at any
 * distance. If `prepare_only`, prepares the change and does not write it. sj_hooks_unpatch undoes
 * it. Errors:
 *   SJ_EINVAL        the function does not begin with `original`
 *   SJ_EUNSUPPORTED  the patch crosses a page boundary (sj_hooks_avoid_page_crossings)
 *   SJ_ENOMEM        out of memory
 *   SJ_EPERM         the text cannot be written, or the jump does not reach */
SJ_MUST_CHECK sj_status sj_hooks_redirect(uint64_t address, const uint8_t *original, uint8_t bytes,
                                          uint64_t target, bool prepare_only,
                                          sj_hooked_module *module);

#endif
