/* The recorder's end of the link (agent/abi/link.h): replies to the agents of a session. It runs in
 * its own thread or in its owner's.
 *
 * Agents are part of foreign programs. Every packet is checked; a bad packet closes the connection
 * of its sender. */
#ifndef SJ_AGENT_LINK_LINK_SERVER_H
#define SJ_AGENT_LINK_LINK_SERVER_H

#include "agent/registry/registry.h"

typedef struct sj_link_server sj_link_server;

/* A process that joined. */
typedef struct sj_link_process {
    uint64_t number;
    pid_t pid;
    const char *arena_name; /* file name in the runtime directory; borrowed during the call */
} sj_link_process;

typedef struct sj_link_server_options {
    const char *runtime_directory; /* the socket is created there; borrowed */
    sj_link_welcome welcome;       /* the reply to every HELLO */
    sj_registry *registry;         /* borrowed */
    void *context;
    /* Called in the server's thread before the agent gets its reply. */
    sj_status (*joined)(void *context, const sj_link_process *process);
    /* Handles a mark of a command, in the server's thread. NULL: marks are refused. */
    sj_status (*mark)(void *context, const char *name, bool end);
    /* Handles `sojourn trigger`, in the server's thread. NULL: triggers are refused. */
    sj_status (*trigger)(void *context, const char *name);
    /* Called in the server's thread if a watched thread of an agent's program does not respond.
     * NULL: not reported. */
    void (*stall)(void *context, const char *name, uint64_t waited_ns);
    /* Handles `sojourn policy set`, in the server's thread. The callee keeps a copy of `fd`, and
     * replies there with sj_link_reply once the policy is in effect. The server refuses the request
     * if this function is NULL, or does not return SJ_OK. */
    sj_status (*policy)(void *context, sj_slice document, int fd);
    /* Handles `sojourn policy show`, in the server's thread: replies with the current policy's
     * document. */
    void (*reply_to_policy)(void *context, int fd);
    bool threadless; /* the owner calls sj_link_server_step */
} sj_link_server_options;

typedef struct sj_link_server_counters {
    uint64_t connections;
    uint64_t joined;      /* number of processes that joined */
    uint64_t ready;       /* conversations that reached DONE */
    uint64_t bad_packets; /* connections closed because of a bad packet */
} sj_link_server_counters;

/* Listens at `<runtime directory>/control` and starts the thread. Returns SJ_EIO, SJ_ENOMEM, or
 * SJ_ELIMIT if the path is too long. */
SJ_MUST_CHECK sj_status sj_link_server_start(const sj_link_server_options *options,
                                             sj_link_server **server, sj_error *error);

/* Handles the packets that have arrived, or that arrive within `timeout_ms` (0: does not wait, -1:
 * waits without a limit). Only for a server without a thread. */
void sj_link_server_step(sj_link_server *server, int timeout_ms);

void sj_link_server_get_counters(sj_link_server *server, sj_link_server_counters *counters);

/* Sends DONE or REFUSED with a text to a command. Cuts the text at the size of a packet. Does not
 * block, and ignores errors. Any thread may call this. */
void sj_link_reply(int fd, sj_link_type type, const char *text);

/* Ends the thread and closes every connection. NULL is allowed. */
void sj_link_server_stop(sj_link_server *server);

#endif
