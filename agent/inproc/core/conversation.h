/* The agent's state and its conversations with the recorder: one at a time in a process, each over
 * a link of its own. The lowest file of this room. */
#ifndef SJ_AGENT_INPROC_CORE_CONVERSATION_H
#define SJ_AGENT_INPROC_CORE_CONVERSATION_H

#include "agent/inproc/core/link_client.h"

#include <stdbool.h>
#include <stdint.h>

/* The environment with which a launched program began, before main; the C library has none yet.
 * NULL when the agent was attached. At least one entry behind its end is free: the launcher's was
 * removed. */
extern char **sj_program_environment;

/* sj_conversation_begin waits until no other thread of the process talks with the recorder, and
 * takes the turn; sj_conversation_end gives it back. False: the calling thread has the turn already
 * (it was interrupted by a signal). */
bool sj_conversation_begin(void);
void sj_conversation_end(void);

/* sj_conversation_begin_within is sj_conversation_begin that also fails after `wait_ns`. */
bool sj_conversation_begin_within(uint64_t wait_ns);

/* sj_conversation_name_arena makes a name for a new arena: <pid>.<n>.arena, where n is the time,
 * because a pid may return in the same directory. Returns it; it lasts until the next call. */
const char *sj_conversation_name_arena(void);

/* sj_conversation_zombies_name returns the name of the zombie region (abi/zombies.h) that belongs
 * to that arena; it lasts until the next call. */
const char *sj_conversation_zombies_name(void);

/* sj_conversation_open connects to the recorder of the session's runtime directory and says HELLO
 * with the last arena's name. The answer fills `*welcome` and link->runtimes. Errors of the link;
 * SJ_EPERM the recorder refused. The caller closes the link in any case. */
SJ_MUST_CHECK sj_status sj_conversation_open(sj_link *link, sj_link_occasion occasion,
                                             sj_link_welcome *welcome);

/* sj_conversation_open_again opens a further conversation of a process that has joined. */
SJ_MUST_CHECK sj_status sj_conversation_open_again(sj_link *link);

/* sj_conversation_finish says DONE and waits for the answer. Errors of the link. */
SJ_MUST_CHECK sj_status sj_conversation_finish(sj_link *link);

/* sj_conversation_ask opens a further conversation for one question: `ask_one` sends it and takes
 * the answer. False: it got none. Blocking. */
bool sj_conversation_ask(sj_status (*ask_one)(sj_link *link, void *question), void *question);

/* A question that is sent before it is known that the recorder listens; `take` gets the link with
 * the answer. */
typedef struct sj_conversation_question {
    sj_status (*send)(sj_link *link, const void *context);
    sj_status (*take)(sj_link *link, const void *context);
    const void *context;
} sj_conversation_question;

/* sj_conversation_ask_at_once is sj_conversation_ask without sj_conversation_finish: nothing that
 * the recorder still has to take follows the answer. The thread sleeps half as often. */
bool sj_conversation_ask_at_once(const sj_conversation_question *question);

#endif
