/* The fleet's part of the database: who may speak to the collector. Devices, commands and policies
 * are in the headers beside this one.
 *
 * A connection of its own beside the ingest's writer: each call is one short transaction that waits
 * for the other writer (busy time-out). One thread at a time. */
#ifndef SJ_COLLECTOR_SERVER_FLEET_FLEET_H
#define SJ_COLLECTOR_SERVER_FLEET_FLEET_H

#include "collector-server/fleet/secret.h"
#include "proto/base/error.h"
#include "proto/wire/sojourn.pb-c.h"

#include <sqlite3.h>

typedef struct sj_fleet sj_fleet;

/* sj_fleet_open opens an existing database. SJ_ENOTFOUND, SJ_ECORRUPT, SJ_EVERSION, SJ_EIO. */
SJ_MUST_CHECK sj_status sj_fleet_open(const char *path, sj_fleet **fleet, sj_error *error);
void sj_fleet_close(sj_fleet *fleet);

/* sj_fleet_database borrows the connection, for reading. */
sqlite3 *sj_fleet_database(const sj_fleet *fleet);

/* sj_fleet_invite makes an enrolment token that one device may use within `hours`: a new one or,
 * when `for_device` is not 0, that one only, which may be enrolled already. */
SJ_MUST_CHECK sj_status sj_fleet_invite(sj_fleet *fleet, unsigned hours, int64_t for_device,
                                        char token[SJ_SECRET_TEXT_BYTES], sj_error *error);

/* sj_fleet_enrol takes an enrolment token and gives the device its own. SJ_EPERM: unknown, used,
 * expired, for another device, or for a new one where this one has been enrolled. A device that
 * enrols again by an invitation made for it gets a new token, the old one ends, and that it was
 * taken over is noted. `*namesakes` is how many other devices have its name. */
SJ_MUST_CHECK sj_status sj_fleet_enrol(sj_fleet *fleet, const Sojourn__Hello *hello,
                                       char token[SJ_SECRET_TEXT_BYTES], int64_t *namesakes,
                                       sj_error *error);

/* sj_fleet_check returns whether the token is that of the device. SJ_EPERM, with the same words for
 * an unknown device, a wrong token and a revoked one. */
SJ_MUST_CHECK sj_status sj_fleet_check(sj_fleet *fleet, const ProtobufCBinaryData *uuid,
                                       const char *token, int64_t *device_id, sj_error *error);

/* sj_fleet_revoke ends a device's token, for connections that are open as well. `by` is who asks.
 * SJ_ENOTFOUND: it has none. */
SJ_MUST_CHECK sj_status sj_fleet_revoke(sj_fleet *fleet, int64_t device_id, const char *by,
                                        sj_error *error);

#endif
