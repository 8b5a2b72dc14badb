/* The agent's end of the link: one conversation at a time, raw system calls, a deadline for every
 * answer. Nothing stays open after sj_link_close. */
#ifndef SJ_AGENT_INPROC_CORE_LINK_CLIENT_H
#define SJ_AGENT_INPROC_CORE_LINK_CLIENT_H

#include "agent/abi/link.h"
#include "proto/base/status.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct sj_link {
    int socket;            /* -1: closed */
    sj_link_packet packet; /* of the answer received last */
    uint8_t *payload;      /* its payload: borrowed until the next receive */
    uint32_t runtimes;     /* sj_link_runtime bits of the recorder's WELCOME */
} sj_link;

/* sj_link_open connects to the recorder of a runtime directory. SJ_ECLOSED nothing listens,
 * SJ_ENOTFOUND no such directory, SJ_EIO. */
SJ_MUST_CHECK sj_status sj_link_open(sj_link *link, const char *runtime);

/* sj_link_payload returns the buffer for the payload of the next packet to send: SJ_LINK_MAX_BYTES
 * less the packet header, shared with the answers. */
uint8_t *sj_link_payload(sj_link *link);

/* sj_link_send sends the first `bytes` of the payload. SJ_ECLOSED, SJ_ETIMEDOUT. */
SJ_MUST_CHECK sj_status sj_link_send(sj_link *link, sj_link_type type, uint32_t bytes);

/* sj_link_send_file does so, and sends a copy of the descriptor `file` along. */
SJ_MUST_CHECK sj_status sj_link_send_file(sj_link *link, sj_link_type type, uint32_t bytes,
                                          int file);

/* sj_link_receive waits for an answer. SJ_ECLOSED, SJ_ETIMEDOUT, SJ_ECORRUPT. */
SJ_MUST_CHECK sj_status sj_link_receive(sj_link *link);

/* sj_link_append_number writes a number in decimal digits at text[used], without a terminator, and
 * returns the new length. */
size_t sj_link_append_number(char *text, size_t used, uint64_t number);

/* sj_link_close ends the conversation; safe when closed. */
void sj_link_close(sj_link *link);

#endif
