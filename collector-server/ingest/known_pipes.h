/* The connections that have said who they are, by NNG's pipe ids. Any thread. */
#ifndef SJ_COLLECTOR_INGEST_KNOWN_PIPES_H
#define SJ_COLLECTOR_INGEST_KNOWN_PIPES_H

#include "proto/status.h"

#include <stdint.h>

typedef struct sj_known_pipes sj_known_pipes;

SJ_MUST_CHECK sj_status sj_known_pipes_new(sj_known_pipes **pipes);
void sj_known_pipes_free(sj_known_pipes *pipes);

/* sj_known_pipes_add notes with which pass a connection came in; the last one counts. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_known_pipes_add(sj_known_pipes *pipes, uint32_t pipe, int64_t pass);

/* sj_known_pipes_pass returns its pass, or 0. */
int64_t sj_known_pipes_pass(sj_known_pipes *pipes, uint32_t pipe);
void sj_known_pipes_remove(sj_known_pipes *pipes, uint32_t pipe);

#endif
