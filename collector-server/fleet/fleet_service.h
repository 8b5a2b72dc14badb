/* The fleet service: checks HELLOs, enrols devices, and gives commands to devices that wait for
 * them. It has one thread. The ingest (ingest.h) calls the service by the callbacks of its gate. */
#ifndef SJ_COLLECTOR_SERVER_FLEET_FLEET_SERVICE_H
#define SJ_COLLECTOR_SERVER_FLEET_FLEET_SERVICE_H

#include "collector-server/ingest/ingest.h"

typedef struct sj_fleet_service sj_fleet_service;

typedef struct sj_fleet_service_options {
    const char *database; /* path of the ingest's database, which must exist */
    bool requires_tokens; /* false: devices that never enrolled may send sessions */
} sj_fleet_service_options;

/* Starts the service; the caller frees it by sj_fleet_service_free. Returns SJ_ENOMEM, SJ_EIO,
 * or the errors of sj_fleet_open. */
SJ_MUST_CHECK sj_status sj_fleet_service_start(const sj_fleet_service_options *options,
                                               sj_fleet_service **service, sj_error *error);

/* Returns the gate to pass to sj_ingest_start. */
sj_ingest_gate sj_fleet_service_gate(sj_fleet_service *service);

/* Answers all waiting polls and ends the thread. Call it before sj_ingest_stop. The service refuses
 * later frames. NULL is allowed. */
void sj_fleet_service_stop(sj_fleet_service *service);

/* Frees the service. The ingest must have been stopped before. */
void sj_fleet_service_free(sj_fleet_service *service);

#endif
