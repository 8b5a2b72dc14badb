/* The recorder's end of the link (agent/abi/link.h): answers the agents of a session, in a
 * thread of its own or its owner's. Agents are part of foreign programs: every packet is checked,
 * and a bad one costs its sender the connection. */
#ifndef SJ_AGENT_LINK_LINK_SERVER_H
#define SJ_AGENT_LINK_LINK_SERVER_H

#include "agent/registry/registry.h"

typedef struct sj_link_server sj_link_server;

/* A process that joined: where its arena will be. */
typedef struct sj_link_process {
    uint64_t number;
    pid_t pid;
    const char *arena_name; /* file name in the runtime directory; borrowed for the call */
} sj_link_process;

typedef struct sj_link_server_options {
    const char *runtime_directory; /* the socket is made in it; borrowed */
    sj_link_welcome welcome;       /* the answer to every HELLO */
    sj_registry *registry;         /* borrowed */
    void *context;
    /* called in the server's thread, before the agent is answered */
    sj_status (*joined)(void *context, const sj_link_process *process);
    /* called in the server's thread when a command marks; NULL: marks are refused */
    sj_status (*mark)(void *context, const char *name, bool end);
    /* the same for `sojourn trigger`; NULL: refused */
    sj_status (*trigger)(void *context, const char *name);
    /* the same when a watched thread of an agent's program does not answer; NULL: not reported */
    void (*stall)(void *context, const char *name, uint64_t waited_ns);
    /* the same for `sojourn policy set`: who takes the document answers with sj_link_answer on a
     * copy of `fd` when it is obeyed; other than SJ_OK: refused. NULL: refused */
    sj_status (*policy)(void *context, sj_slice document, int fd);
    /* the same for `sojourn policy show`: answers with the document that is obeyed */
    void (*answer_policy)(void *context, int fd);
    bool threadless; /* the owner makes the steps */
} sj_link_server_options;

typedef struct sj_link_server_counters {
    uint64_t connections;
    uint64_t joined;      /* processes */
    uint64_t ready;       /* conversations that came to DONE */
    uint64_t bad_packets; /* connections closed because of one */
} sj_link_server_counters;

/* sj_link_server_start listens at `<runtime directory>/control` and starts the thread. SJ_EIO. */
SJ_MUST_CHECK sj_status sj_link_server_start(const sj_link_server_options *options,
                                             sj_link_server **server, sj_error *error);

/* sj_link_server_step answers those who ask within `timeout_ms` (0: at once, -1: for ever), or who
 * was there before. Without a thread only. */
void sj_link_server_step(sj_link_server *server, int timeout_ms);

void sj_link_server_get_counters(sj_link_server *server, sj_link_server_counters *counters);

/* sj_link_answer sends DONE or REFUSED with a text (cut at what a packet holds) to a command. Any
 * thread. */
void sj_link_answer(int fd, sj_link_type type, const char *text);

/* sj_link_server_stop ends the thread and closes every connection. NULL is allowed. */
void sj_link_server_stop(sj_link_server *server);

#endif
