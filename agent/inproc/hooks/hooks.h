/* Hooks: applies a plan to a loaded module, and undoes it.
 *
 * A plan is checked, its stubs are generated near the module, and only then is the module's text
 * changed: per function all patches or none. A function whose bytes in memory are not those of the
 * plan, or for which a displacement does not reach, is reported and not patched. No thread may run
 * the bytes to be patched meanwhile: called at program start, and while the loader maps a module.
 */
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
    uint32_t hooked;
    uint32_t failed;
    uint32_t stub_bytes;
    sj_link_failure *failures; /* room of the caller for the first of them */
    uint32_t failures_room;
    bool is_movable; /* the stubs would do in another process that is laid out alike (ready.h) */
    uint8_t
        *marks; /* a byte for each function of the plan, set to 1 where it is hooked; NULL: none */
} sj_hooks_report;

/* sj_hooks_apply applies the plan file `bytes` to the module at `bias`; function[i] records the id
 * `first_function` + i, one of generated code its own. On failure nothing is changed. SJ_ECORRUPT
 * or SJ_EVERSION a bad plan, SJ_EUNSUPPORTED one for another machine, SJ_ENOMEM, SJ_EPERM the text
 * cannot be written. */
SJ_MUST_CHECK sj_status sj_hooks_apply(const void *bytes, size_t size_bytes, uint64_t bias,
                                       uint32_t first_function, sj_hooked_module *module,
                                       sj_hooks_report *report);

/* sj_hooks_prepare is sj_hooks_apply without writing the text: every change is kept with `written`
 * 0, for a tracer to write while no thread runs. */
SJ_MUST_CHECK sj_status sj_hooks_prepare(const void *bytes, size_t size_bytes, uint64_t bias,
                                         uint32_t first_function, sj_hooked_module *module,
                                         sj_hooks_report *report);

/* Code of the caller's own at the entries of functions, in the place of the recording of calls. */
typedef struct sj_hooks_heads {
    void *context;
    /* Emits what runs at the entry of function `index` of the plan, once to measure it and once to
     * write it, equally long. Arguments are in their registers, the return address is on top of
     * the stack; the flags and what callees may change (but arguments) are free. Falling through
     * goes on with the function. */
    void (*emit)(void *context, struct sj_code_emitter *emitter, uint32_t index);
    uint32_t function; /* what changes bear in the place of a function's id */
    bool prepare_only; /* as sj_hooks_prepare */
} sj_hooks_heads;

/* sj_hooks_apply_heads is sj_hooks_apply for such code; exits are not recorded. Functions that it
 * changes are refused to plans that are applied later (SJ_SKIP_CODE_DIFFERS). */
SJ_MUST_CHECK sj_status sj_hooks_apply_heads(const void *bytes, size_t size_bytes, uint64_t bias,
                                             const sj_hooks_heads *heads, sj_hooked_module *module,
                                             sj_hooks_report *report);

/* sj_hooks_avoid_page_crossings makes this process refuse patches that cross a page boundary from
 * now on: a tracer that writes or restores one may be killed between the two pages. Called when the
 * process is attached to, before any plan is applied. */
void sj_hooks_avoid_page_crossings(void);

/* sj_hooks_expect_dispatch says that calls will be recorded by hooks/dispatch.h, too: entries in
 * plans that are applied from now on check whether such a call has jumped to them, and end it.
 * sj_hooks_expects_dispatch returns whether it was called. */
void sj_hooks_expect_dispatch(void);
bool sj_hooks_expects_dispatch(void);

/* sj_library_calls_bind binds the imports of a relocated module to their stubs; lazily bound ones
 * are resolved now. Imports that nothing defines are reported as not hooked (SJ_SKIP_UNDEFINED),
 * unless `report` is NULL. Takes the loader's lock; the loader may allocate where a symbol is in no
 * global scope. */
void sj_library_calls_bind(sj_hooked_module *module, sj_hooks_report *report);

/* sj_library_calls_prepare does so in a running program without writing the slots' stubs: every
 * change is kept with `written` 0, for a tracer. Takes no lock but that of dl_iterate_phdr. Imports
 * that only the loader could resolve (definition.h), or whose target `may_dispatch_to` refuses, are
 * unchanged and reported as not hooked (SJ_SKIP_NOT_BOUND). */
void sj_library_calls_prepare(sj_hooked_module *module, bool (*may_dispatch_to)(uint64_t target),
                              sj_hooks_report *report);

/* sj_library_calls_defer makes the loader call `entry`, which calls sj_library_calls_bind, before
 * the initialisation of a module that it is just mapping. Imports of modules without initialisers
 * are unchanged and reported as not hooked (SJ_SKIP_NOT_BOUND), as are weak imports that nothing
 * defines (SJ_SKIP_UNDEFINED). */
void sj_library_calls_defer(sj_hooked_module *module, void (*entry)(void), sj_hooks_report *report);

/* sj_library_calls_release lets the initialisation of a deferred module go on with its imports
 * unchanged. */
void sj_library_calls_release(sj_hooked_module *module);

/* sj_library_calls_is_deferred: a module's imports wait for its initialisation. */
bool sj_library_calls_is_deferred(const sj_hooked_module *module);

/* sj_hooks_unpatch restores every byte of the module. The stubs stay mapped, because a thread may
 * still run in them. SJ_EPERM the text cannot be written; nothing is changed. */
SJ_MUST_CHECK sj_status sj_hooks_unpatch(sj_hooked_module *module);

/* sj_hooks_forget releases what belongs to a module that has been unloaded or unpatched and whose
 * stubs no thread runs any more. */
void sj_hooks_forget(sj_hooked_module *module);

/* sj_near_release gives back what is mapped ahead for stubs of generated code. */
void sj_near_release(void);

/* sj_hooks_redirect makes the function at `address`, whose code must be `original`, jump to
 * `target` at any distance; only prepares that when `prepare_only`. sj_hooks_unpatch undoes it.
 * Errors as sj_hooks_apply; SJ_EINVAL when the code differs. */
SJ_MUST_CHECK sj_status sj_hooks_redirect(uint64_t address, const uint8_t *original, uint8_t bytes,
                                          uint64_t target, bool prepare_only,
                                          sj_hooked_module *module);

#endif
