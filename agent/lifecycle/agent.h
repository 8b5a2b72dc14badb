/* The agent as a whole: what its doors (constructor, fork handlers, loader) do. */
#ifndef SJ_AGENT_LIFECYCLE_AGENT_H
#define SJ_AGENT_LIFECYCLE_AGENT_H

#include "agent/lifecycle/link_client.h"

#include <stdbool.h>

/* sj_agent_on_modules talks with the companion about modules loaded or unloaded since the last
 * conversation. Called under the loader's lock. When the companion is gone, new modules stay
 * unhooked. */
void sj_agent_on_modules(void);

/* sojourn_agent_attach joins the session whose runtime directory a tracer has written to the face,
 * and prepares the hooks of all modules without writing any. Called by a tracer in a thread that
 * stands outside of the loader and the allocator, while the others run. The face's phase is the
 * result. Again: announces the modules that have been loaded since. */
void sojourn_agent_attach(void);

/* sojourn_agent_review asks the companion which functions more are wanted of the modules that it
 * knows, and prepares their hooks; the text stays as it is. Called by a tracer in any thread. */
void sojourn_agent_review(void);

/* sojourn_agent_leave gives everything back but the agent itself. Called by a tracer after it has
 * restored the text and found no thread in the stubs or in the agent, while all others are stopped:
 * it takes no lock. */
void sojourn_agent_leave(void);

/* sojourn_agent_bind leads the Objective-C dispatcher of every module here, when the session asks
 * for that; the face tells. Called by a tracer in a thread that holds no lock of the loader. */
void sojourn_agent_bind(void);

/* sojourn_agent_unbind gives every module the Objective-C dispatcher back that it had. Called by a
 * tracer in a thread that holds no lock of the loader; other threads run on. */
void sojourn_agent_unbind(void);

/* sojourn_agent_unregister makes the C library forget the fork handlers, for good: called by a
 * tracer after sojourn_agent_leave, in a thread that holds no lock of the C library. */
void sojourn_agent_unregister(void);

/* sj_agent_begin_conversation waits until no other thread talks with the companion. False when the
 * calling thread does itself (it was interrupted by a signal). */
bool sj_agent_begin_conversation(void);
void sj_agent_end_conversation(void);

/* sj_agent_greet_again opens a further conversation of a process that has joined; sj_agent_part
 * closes it. */
SJ_MUST_CHECK sj_status sj_agent_greet_again(sj_link *link);
SJ_MUST_CHECK sj_status sj_agent_part(sj_link *link);

#endif
