/* Conversations with the recorder. A process has one conversation at a time, each over its own
 * link. */
#ifndef SJ_AGENT_INPROC_LINK_CONVERSATION_H
#define SJ_AGENT_INPROC_LINK_CONVERSATION_H

#include "agent/inproc/link/link_client.h"

#include <stdbool.h>
#include <stdint.h>

/* The environment that a launched program got from the kernel, for code that runs before main. NULL
 * in an attached process. After its last entry there is space for at least one more, because the
 * launcher's entry was removed. */
extern char **sj_program_environment;

/* sj_conversation_begin waits until no other thread of the process talks with the recorder, and
 * takes the turn. sj_conversation_end gives the turn back. Returns false if the calling thread has
 * the turn already: a signal handler then interrupts its conversation. */
bool sj_conversation_begin(void);
void sj_conversation_end(void);

/* Does the same as sj_conversation_begin, but also returns false if another thread keeps the turn
 * for `wait_ns`. */
bool sj_conversation_begin_within(uint64_t wait_ns);

/* Makes a name for a new arena: <pid>.<n>.arena. n is the time, because a pid may occur again in
 * the same directory. The name is valid until the next call. */
const char *sj_conversation_name_arena(void);

/* Returns the name of the zombie region (abi/zombies.h) that belongs to the arena named by the last
 * sj_conversation_name_arena. The name is valid until the next call. */
const char *sj_conversation_zombies_name(void);

/* Connects to the recorder of the session's runtime directory and sends HELLO with the last arena's
 * name. Fills `*welcome` and link->runtimes from the reply. Returns errors of the link, or SJ_EPERM
 * if the recorder refused. The caller closes the link in any case. */
SJ_MUST_CHECK sj_status sj_conversation_open(sj_link *link, sj_link_occasion occasion,
                                             sj_link_welcome *welcome);

/* Opens a further conversation of a process that has joined. Returns an error of
 * sj_conversation_open. */
SJ_MUST_CHECK sj_status sj_conversation_open_again(sj_link *link);

/* Sends DONE and waits for the reply. Returns errors of the link. */
SJ_MUST_CHECK sj_status sj_conversation_finish(sj_link *link);

/* Opens a further conversation for one question. `ask_one` sends the question and receives the
 * reply. Returns false if the conversation failed, or if the calling thread has the turn already.
 * Blocking. */
bool sj_conversation_ask(sj_status (*ask_one)(sj_link *link, void *question), void *question);

/* A question that is sent right after HELLO, before the recorder's WELCOME has arrived. `send`
 * sends it. `take` reads the reply from the link's payload. */
typedef struct sj_conversation_question {
    sj_status (*send)(sj_link *link, const void *context);
    sj_status (*take)(sj_link *link, const void *context);
    const void *context;
} sj_conversation_question;

/* Opens a further conversation for one question and closes it after the reply, without DONE.
 * Returns false in the same cases as sj_conversation_ask. Blocking, but the thread sleeps half as
 * often. */
bool sj_conversation_ask_at_once(const sj_conversation_question *question);

/* Reports lines of methods that ran, as words of an sj_link_lines. Does nothing without a recorder.
 * Blocking. */
void sj_conversation_report_lines(const uint32_t *words, uint32_t count, bool is_last);

#endif
