/* The modules of the process: announces them to the companion, applies the plans it answers with,
 * and follows what the loader maps and unmaps later. */
#ifndef SJ_AGENT_LIFECYCLE_MODULES_H
#define SJ_AGENT_LIFECYCLE_MODULES_H

#include "agent/lifecycle/face.h"
#include "agent/lifecycle/link_client.h"

#include <stdbool.h>

/* sj_modules_announce tells the companion each module that it does not know, applies its plans,
 * and reports those that were unloaded. `is_loading`: the loader has mapped but not yet relocated
 * those that are new. The link is open, after WELCOME. Errors of the link; a plan
 * that cannot be applied leaves its module alone and is reported. */
SJ_MUST_CHECK sj_status sj_modules_announce(sj_link *link, bool is_loading);

/* sj_modules_review asks the companion which functions more are wanted of the modules that it
 * knows, and prepares their hooks without writing them. Errors of the link. */
SJ_MUST_CHECK sj_status sj_modules_review(sj_link *link);

/* sj_modules_forget_unloaded drops what is known of unloaded modules without telling anybody. */
void sj_modules_forget_unloaded(void);

/* sj_modules_changed tells whether sj_modules_announce has something to say. */
bool sj_modules_changed(void);

/* sj_modules_follow hooks the loader's debug hook, so that modules loaded later are announced
 * before their constructors run. SJ_EUNSUPPORTED when the loader's code is not as expected. */
SJ_MUST_CHECK sj_status sj_modules_follow(void);

/* sj_modules_restore unpatches all modules and the loader. */
void sj_modules_restore(void);

/* sj_modules_show writes where the tables of changes lie to the face. */
void sj_modules_show(sj_face *face);

/* sj_modules_forget_all unmaps the stubs and changes of all modules. Their text has been restored
 * and no thread runs in the stubs. Takes no lock. */
void sj_modules_forget_all(void);

/* sj_modules_on_loader_event is called in place of the loader's debug hook, under its lock. */
void sj_modules_on_loader_event(void);

/* sj_modules_on_initialisation is called by the loader before it initialises a module that waits
 * for it (sj_library_calls_defer), under the loader's lock: all that wait are relocated now. */
void sj_modules_on_initialisation(void);

/* sj_modules_is_left_alone tells whether code at an address belongs to a module that the companion
 * leaves alone. */
bool sj_modules_is_left_alone(uint64_t address);

#endif
