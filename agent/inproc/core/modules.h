/* The modules of the process: announces them to the recorder, applies the plans it answers with,
 * and follows what the loader maps and unmaps later. */
#ifndef SJ_AGENT_INPROC_CORE_MODULES_H
#define SJ_AGENT_INPROC_CORE_MODULES_H

#include "agent/abi/agent_state.h"
#include "agent/abi/overwritten.h"
#include "agent/inproc/core/link_client.h"

#include <link.h>
#include <stdbool.h>

/* sj_modules_announce announces to the recorder each module that it does not know, applies its
 * plans, and reports those that were unloaded. `is_loading`: the loader has mapped but not yet
 * relocated those that are new. The link is open, after WELCOME. Errors of the link; a plan that
 * cannot be applied is reported, and its module stays unpatched. */
SJ_MUST_CHECK sj_status sj_modules_announce(sj_link *link, bool is_loading);

/* sj_modules_pass_over has the recorder never asked about the modules that are loaded: threads run
 * their code, and nobody stops them. Before the first sj_modules_announce. */
void sj_modules_pass_over(void);

/* sj_modules_prepare_transition asks the recorder which further functions of the known modules it
 * wants, and prepares their hooks without writing them. Errors of the link. */
SJ_MUST_CHECK sj_status sj_modules_prepare_transition(sj_link *link);

/* sj_modules_hook_generated writes the hooks of code that no module holds, or, if a thread may run
 * it (`runs`), only prepares them, of the plan that the recorder has just answered with, and
 * reports the outcome. marks[i] is set to 1 where function i of it gets hooks. Errors of the link;
 * SJ_ELIMIT: there is no room. */
SJ_MUST_CHECK sj_status sj_modules_hook_generated(sj_link *link, uint64_t low, uint64_t high,
                                                  bool runs, uint8_t *marks);

/* sj_modules_forget_unloaded drops the entries of unloaded modules without a report. */
void sj_modules_forget_unloaded(void);

/* sj_modules_changed: sj_modules_announce would have something to report. */
bool sj_modules_changed(void);

/* The agent calls sj_on_module for a module that was loaded later, whose initialisers have not
 * run. glibc has not relocated it yet. Under the loader's lock. */
typedef void sj_on_module(const struct dl_phdr_info *info);

/* sj_modules_follow hooks the loader's debug hook, so that modules loaded later are announced
 * before their constructors run: `on_change` is called under the loader's lock after modules
 * were loaded or unloaded, and `on_module`, unless it is NULL, with each module that is announced.
 * SJ_EUNSUPPORTED when the loader's code is not as expected. */
SJ_MUST_CHECK sj_status sj_modules_follow(void (*on_change)(void), sj_on_module *on_module);

/* sj_modules_redirect is sj_hooks_redirect for a place in the C library, as the hooks of modules
 * are: a tracer writes and restores it in an attached process. SJ_ELIMIT: there is no room. */
SJ_MUST_CHECK sj_status sj_modules_redirect(uint64_t address, const uint8_t *original,
                                            uint8_t bytes, uint64_t target);

/* sj_modules_restore unpatches all modules and the loader. */
void sj_modules_restore(void);

/* sj_modules_find_overwritten adds the functions of loaded modules whose hooks the program has
 * overwritten. Makes system calls. False, and nothing is known: another thread changes the tables
 * right now. */
bool sj_modules_find_overwritten(sj_overwritten *found);

/* sj_modules_publish writes the addresses of the tables of changes to the agent's state. */
void sj_modules_publish(sj_agent_state *state);

/* sj_modules_forget_all unmaps the stubs and changes of all modules. Their text has been restored
 * and no thread runs in the stubs. Takes no lock. */
void sj_modules_forget_all(void);

/* sj_modules_on_loader_event is called in place of the loader's debug hook, under its lock. */
void sj_modules_on_loader_event(void);

/* sj_modules_on_initialisation binds the imports that were deferred (sj_library_calls_defer): the
 * loader is about to initialise one of their modules, all of which are relocated now. Under the
 * loader's lock. */
void sj_modules_on_initialisation(void);

/* sj_modules_is_excluded: the recorder wants nothing of the module that holds this code. */
bool sj_modules_is_excluded(uint64_t address);

#endif
