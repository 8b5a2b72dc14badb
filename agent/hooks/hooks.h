/* Hooks: applies a plan to a loaded module, and takes it out again.
 *
 * A plan is checked, its stubs are generated near the module, and only then is the module's text
 * changed: per function all patches or none. Where the bytes in memory are not those of the plan,
 * or a displacement does not reach, the function is left alone and reported. No thread may run the
 * bytes to be patched meanwhile: called at program start, and while the loader maps a module. */
#ifndef SJ_AGENT_HOOKS_HOOKS_H
#define SJ_AGENT_HOOKS_HOOKS_H

#include "agent/lifecycle/link.h"
#include "agent/planner/plan.h"
#include "proto/status.h"

#include <stdbool.h>
#include <stddef.h>

/* One change of the text, kept so that it can be undone and made again, by this process or by a
 * tracer (agent/control/toggle.h). */
typedef struct sj_hook_change {
    uint64_t address;
    uint32_t function; /* id; 0: not of a function */
    uint8_t bytes;
    uint8_t window;  /* bytes that no thread may stand in while they are written */
    uint8_t written; /* 1: `patched` is in the text, 0: `original` is */
    uint8_t is_slot; /* 1: an import's slot, which the loader may write, too */
    uint8_t original[SJ_PATCH_MAX_BYTES];
    uint8_t patched[SJ_PATCH_MAX_BYTES];
} sj_hook_change;

/* What was done to one module. Zeroed is a module with nothing done; owned by the caller. */
typedef struct sj_hooked_module {
    uint64_t bias;
    uint8_t *stubs; /* executable memory of the stubs; NULL: none */
    uint64_t stubs_bytes;
    sj_hook_change *changes; /* mapped */
    uint64_t changes_bytes;
    uint32_t change_count;
    uint32_t first_function;
    struct sj_library_calls *calls; /* mapped; NULL: the plan has no imports */
} sj_hooked_module;

typedef struct sj_hooks_report {
    uint32_t hooked;
    uint32_t failed;
    uint32_t stub_bytes;
    sj_link_failure *failures; /* room of the caller for the first of them */
    uint32_t failures_room;
} sj_hooks_report;

/* sj_hooks_apply applies the plan file `bytes` to the module at `bias`; function[i] records the id
 * `first_function` + i. On failure nothing is changed. SJ_ECORRUPT or SJ_EVERSION a bad plan,
 * SJ_EUNSUPPORTED one for another machine, SJ_ENOMEM, SJ_EPERM the text cannot be written. */
SJ_MUST_CHECK sj_status sj_hooks_apply(const void *bytes, size_t size_bytes, uint64_t bias,
                                       uint32_t first_function, sj_hooked_module *module,
                                       sj_hooks_report *report);

/* sj_hooks_prepare does as sj_hooks_apply but writes nothing to the text: every change is kept with
 * `written` 0, for a tracer to write while no thread runs. */
SJ_MUST_CHECK sj_status sj_hooks_prepare(const void *bytes, size_t size_bytes, uint64_t bias,
                                         uint32_t first_function, sj_hooked_module *module,
                                         sj_hooks_report *report);

/* sj_hooks_spare_pages makes this process leave functions alone from now on of which a patch
 * crosses a page boundary: a tracer that writes or restores it may be killed between the two pages.
 * Called when the process is attached to, before any plan is applied. */
void sj_hooks_spare_pages(void);

/* sj_hooks_meet_dispatch tells that calls will be recorded by hooks/dispatch.h, too: the entries of
 * functions whose plans are applied from now on look whether such a call has jumped to them, and
 * end it. sj_hooks_meets_dispatch tells whether that was said. */
void sj_hooks_meet_dispatch(void);
bool sj_hooks_meets_dispatch(void);

/* sj_library_calls_bind leads the imports of a module that the loader has relocated to their stubs;
 * those that were to be bound when they are first called are bound now. Imports that nothing
 * defines are reported as not hooked (SJ_SKIP_UNDEFINED); `report` NULL: they are not. Takes the
 * loader's lock; the loader may allocate where a symbol is in no global scope. */
void sj_library_calls_bind(sj_hooked_module *module, sj_hooks_report *report);

/* sj_library_calls_prepare does so in a program that runs, as far as that needs the program: every
 * change is kept with `written` 0, for a tracer. Takes no lock but that of dl_iterate_phdr; what
 * only the loader could bind (definition.h), and what calls a target that `may_call` refuses, stays
 * as it is and is reported as not hooked (SJ_SKIP_NOT_BOUND). */
void sj_library_calls_prepare(sj_hooked_module *module, bool (*may_call)(uint64_t target),
                              sj_hooks_report *report);

/* sj_library_calls_defer has the loader call the agent first of all when it initialises a module
 * that it is just mapping: `sj_modules_on_initialisation`, which calls sj_library_calls_bind.
 * The imports of modules that initialise nothing stay as they are and are reported as not hooked
 * (SJ_SKIP_NOT_BOUND), and so are weak imports that nothing defines (SJ_SKIP_UNDEFINED). */
void sj_library_calls_defer(sj_hooked_module *module, sj_hooks_report *report);

/* sj_library_calls_release lets the initialisation of a deferred module go on, its imports as they
 * are. */
void sj_library_calls_release(sj_hooked_module *module);

/* sj_library_calls_is_deferred tells whether a module waits for its initialisation. */
bool sj_library_calls_is_deferred(const sj_hooked_module *module);

/* sj_hooks_unpatch restores every byte of the module. The stubs stay mapped, because a thread may
 * still run in them. SJ_EPERM the text cannot be written: the module stays as it was. */
SJ_MUST_CHECK sj_status sj_hooks_unpatch(sj_hooked_module *module);

/* sj_hooks_forget releases what belongs to a module that has been unloaded or unpatched and whose
 * stubs no thread runs any more. */
void sj_hooks_forget(sj_hooked_module *module);

/* sj_hooks_redirect makes the function at `address`, whose code must be `original`, jump to
 * `target` at any distance; only prepares that when `prepare_only`. Undone by sj_hooks_unpatch.
 * Errors as sj_hooks_apply; SJ_EINVAL when the code differs. */
SJ_MUST_CHECK sj_status sj_hooks_redirect(uint64_t address, const uint8_t *original, uint8_t bytes,
                                          uint64_t target, bool prepare_only,
                                          sj_hooked_module *module);

#endif
