/* The modules of the process. Announces them to the recorder, applies the plans in its replies, and
 * follows the modules that the loader maps and unmaps later. */
#ifndef SJ_AGENT_INPROC_CORE_MODULES_H
#define SJ_AGENT_INPROC_CORE_MODULES_H

#include "agent/abi/agent_state.h"
#include "agent/abi/overwritten.h"
#include "agent/inproc/link/link_client.h"

#include <link.h>
#include <stdbool.h>

/* The moment at which modules are announced. */
typedef enum sj_modules_moment {
    SJ_MODULES_LOADED, /* the new modules are relocated */
    SJ_MODULES_LOADING /* the loader may have mapped new modules but not relocated them */
} sj_modules_moment;

/* Announces each module that the recorder does not know, applies its plans, and reports unloaded
 * modules. The link is open, after WELCOME. Returns errors of the link. A plan that cannot be
 * applied is reported, and its module stays unpatched. Holds the lock of dl_iterate_phdr while a
 * plan is applied, but not while the recorder is asked. */
SJ_MUST_CHECK sj_status sj_modules_announce(sj_link *link, sj_modules_moment moment);

/* Excludes the loaded modules: the recorder is never asked about them, because running threads
 * execute their code. Call it before the first sj_modules_announce. */
void sj_modules_pass_over(void);

/* Asks the recorder which further functions of the known modules it wants, and prepares their hooks
 * without writing them. Returns errors of the link. */
SJ_MUST_CHECK sj_status sj_modules_prepare_transition(sj_link *link);

/* Writes the hooks of generated code, by the plan in the recorder's latest reply, and reports the
 * result. If threads may run the code (`runs`), it only prepares them. Sets marks[i] to 1 if
 * function i is hooked. Returns errors of the link, or SJ_ELIMIT if the table is full. */
SJ_MUST_CHECK sj_status sj_modules_hook_generated(sj_link *link, uint64_t low, uint64_t high,
                                                  bool runs, uint8_t *marks);

/* Removes the entries of unloaded modules without a report. */
void sj_modules_forget_unloaded(void);

/* True if sj_modules_announce would report something. */
bool sj_modules_changed(void);

/* The agent calls it for a module that was loaded later, whose initialisers have not run. glibc has
 * not relocated the module yet. The caller holds the loader's lock. */
typedef void sj_on_module(const struct dl_phdr_info *info);

/* Hooks the loader's debug hook, so that modules loaded later are announced before their
 * constructors run. `on_change` is called under the loader's lock after modules were loaded or
 * unloaded. `on_module`, which may be NULL, is called with each announced module. Returns
 * SJ_EUNSUPPORTED if the loader's code is not as expected. */
SJ_MUST_CHECK sj_status sj_modules_follow(void (*on_change)(void), sj_on_module *on_module);

/* Like sj_hooks_redirect for a place in the C library. In an attached process a tracer writes and
 * restores the change, as it does for hooks of modules. When the change is written, a thread inside
 * the first `repeated` bytes is moved to `address`; 0: no thread is moved. Returns SJ_ELIMIT if the
 * table is full. */
SJ_MUST_CHECK sj_status sj_modules_redirect(uint64_t address, const uint8_t *original,
                                            uint8_t bytes, uint8_t repeated, uint64_t target);

/* Unpatches all modules and the loader. */
void sj_modules_restore(void);

/* Adds the functions of loaded modules whose hooks the program has overwritten. Makes system calls.
 * Returns false, and adds nothing, if another thread is changing the tables. */
bool sj_modules_find_overwritten(sj_overwritten *found);

/* Writes the addresses of the tables of changes to the agent's state. */
void sj_modules_publish(sj_agent_state *state);

/* Unmaps the stubs and changes of all modules. Their text must be restored, and no thread may run
 * the stubs. Takes no lock. */
void sj_modules_forget_all(void);

/* Hooks modules that were loaded, when the loader reports that its list is complete. Called instead
 * of the loader's debug hook, under the loader's lock. */
void sj_modules_on_loader_event(void);

/* Binds the deferred imports (sj_library_calls_defer). The loader is about to initialise one of
 * their modules, and all these modules are relocated now. The caller holds the loader's lock. */
void sj_modules_on_initialisation(void);

/* True if the recorder has no plan for the module that contains this code. */
bool sj_modules_is_excluded(uint64_t address);

#endif
