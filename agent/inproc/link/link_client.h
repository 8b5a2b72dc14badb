/* The agent's end of the link: one conversation at a time, raw system calls, and a deadline for
 * every reply. After sj_link_close no descriptor is open. A signal handler may fork during a
 * conversation, and the child may return from the handler. In the child, sending and receiving fail
 * with SJ_ECLOSED, because the replies are the parent's. */
#ifndef SJ_AGENT_INPROC_LINK_LINK_CLIENT_H
#define SJ_AGENT_INPROC_LINK_LINK_CLIENT_H

#include "agent/abi/link.h"
#include "proto/base/status.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct sj_link {
    int socket;            /* -1: closed */
    uint32_t process;      /* pid of the process whose conversation it is */
    sj_link_packet packet; /* header of the last reply */
    uint8_t *payload;      /* its payload, borrowed until the next receive */
    uint32_t runtimes;     /* sj_link_runtime bits of the recorder's WELCOME */
} sj_link;

/* Connects to the recorder of a runtime directory. Returns SJ_ECLOSED if no recorder listens,
 * SJ_ENOTFOUND if the directory does not exist, or SJ_EIO. */
SJ_MUST_CHECK sj_status sj_link_open(sj_link *link, const char *runtime);

/* Returns the buffer for the payload of the next packet to send. Its size is SJ_LINK_MAX_BYTES
 * minus the packet header. Replies use the same buffer. */
uint8_t *sj_link_payload(sj_link *link);

/* Sends the first `bytes` of the payload. Returns SJ_ECLOSED or SJ_ETIMEDOUT on failure. */
SJ_MUST_CHECK sj_status sj_link_send(sj_link *link, sj_link_type type, uint32_t bytes);

/* Does the same as sj_link_send, and also sends a copy of the descriptor `file`. */
SJ_MUST_CHECK sj_status sj_link_send_file(sj_link *link, sj_link_type type, uint32_t bytes,
                                          int file);

/* Waits for a reply. Returns SJ_ECLOSED, SJ_ETIMEDOUT or SJ_ECORRUPT on failure. */
SJ_MUST_CHECK sj_status sj_link_receive(sj_link *link);

/* False in a child that was forked during the conversation. */
bool sj_link_is_own(const sj_link *link);

/* Writes a number in decimal digits at text[used], without a terminator. Returns the new length. */
size_t sj_link_append_number(char *text, size_t used, uint64_t number);

/* Ends the conversation. Safe if the link is closed. */
void sj_link_close(sj_link *link);

#endif
