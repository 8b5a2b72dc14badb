/* The fleet service: judges HELLOs, enrols devices and hands out commands to devices that wait for
 * them. One thread; its gate is given to the ingest, whose edge carries everything. */
#ifndef SJ_COLLECTOR_SERVER_FLEET_FLEET_SERVICE_H
#define SJ_COLLECTOR_SERVER_FLEET_FLEET_SERVICE_H

#include "collector-server/ingest/ingest.h"

typedef struct sj_fleet_service sj_fleet_service;

typedef struct sj_fleet_service_options {
    const char *database; /* the ingest's, already created */
    bool requires_tokens; /* false: sessions are taken from devices that never enrolled */
} sj_fleet_service_options;

SJ_MUST_CHECK sj_status sj_fleet_service_start(const sj_fleet_service_options *options,
                                               sj_fleet_service **service, sj_error *error);

/* sj_fleet_service_gate is what the ingest is to be started with. */
sj_ingest_gate sj_fleet_service_gate(sj_fleet_service *service);

/* sj_fleet_service_stop answers all that wait and ends the thread; the ingest must still run, and
 * refuses frames of the fleet from then on (they are dropped). */
void sj_fleet_service_stop(sj_fleet_service *service);

/* sj_fleet_service_free: after the ingest was stopped. */
void sj_fleet_service_free(sj_fleet_service *service);

#endif
