/* The agent's end of the link: one conversation at a time, raw system calls, a deadline for every
 * answer. Nothing stays open after sj_link_close. */
#ifndef SJ_AGENT_LIFECYCLE_LINK_CLIENT_H
#define SJ_AGENT_LIFECYCLE_LINK_CLIENT_H

#include "agent/lifecycle/link.h"
#include "proto/status.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct sj_link {
    int socket;            /* -1: closed */
    sj_link_packet packet; /* of the answer received last */
    uint8_t *payload;      /* its payload: borrowed until the next receive or make */
    bool wants_imports;    /* the companion said so */
} sj_link;

/* sj_link_open connects to the companion of a runtime directory. SJ_ECLOSED nobody listens. */
SJ_MUST_CHECK sj_status sj_link_open(sj_link *link, const char *runtime);

/* sj_link_make returns room for the payload of the next packet to send: SJ_LINK_MAX_BYTES less the
 * packet header, shared with the answers. */
uint8_t *sj_link_make(sj_link *link);

/* sj_link_send sends the payload made, `bytes` long. SJ_ECLOSED, SJ_ETIMEDOUT. */
SJ_MUST_CHECK sj_status sj_link_send(sj_link *link, sj_link_type type, uint32_t bytes);

/* sj_link_receive waits for an answer. SJ_ECLOSED, SJ_ETIMEDOUT, SJ_ECORRUPT. */
SJ_MUST_CHECK sj_status sj_link_receive(sj_link *link);

/* sj_link_close ends the conversation; safe when closed. */
void sj_link_close(sj_link *link);

#endif
