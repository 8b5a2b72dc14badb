/* The fleet's part of the database: which devices may connect. fleet_devices.h, fleet_commands.h
 * and fleet_policies.h are about devices, commands and policies.
 *
 * An sj_fleet has its own connection, beside that of the ingest's writer. Each call is one short
 * transaction that waits for the other writer (busy timeout). Not thread-safe. */
#ifndef SJ_COLLECTOR_SERVER_FLEET_FLEET_H
#define SJ_COLLECTOR_SERVER_FLEET_FLEET_H

#include "collector-server/fleet/secret.h"
#include "proto/base/error.h"
#include "proto/wire/sojourn.pb-c.h"

#include <sqlite3.h>

typedef struct sj_fleet sj_fleet;

/* Opens an existing database. Returns SJ_ENOTFOUND, SJ_ECORRUPT, SJ_EVERSION or SJ_EIO. */
SJ_MUST_CHECK sj_status sj_fleet_open(const char *path, sj_fleet **fleet, sj_error *error);
void sj_fleet_close(sj_fleet *fleet);

/* Returns the connection, borrowed. */
sqlite3 *sj_fleet_database(const sj_fleet *fleet);

/* Creates an enrolment token that one device may use within `hours`. If `for_device` is 0, the
 * token is for a new device; else only for that device, which may already be enrolled. Returns
 * SJ_EIO if the system gives no random bytes, or an error of the database (sj_database_status). */
SJ_MUST_CHECK sj_status sj_fleet_invite(sj_fleet *fleet, unsigned hours, int64_t for_device,
                                        char token[SJ_SECRET_TEXT_BYTES], sj_error *error);

/* Uses up an enrolment token and gives the device its own token. Returns SJ_EPERM if the
 * enrolment token is unknown, used, expired, or for another device. Also returns SJ_EPERM if it
 * is for a new device, and this device has been enrolled before. Returns SJ_ELIMIT if the device
 * has too many tags.
 *
 * A device that enrols again, by an invitation made for it, gets a new token. The old token becomes
 * invalid, and the event "taken over" is stored. `*namesakes` is the number of other devices with
 * the same name. */
SJ_MUST_CHECK sj_status sj_fleet_enrol(sj_fleet *fleet, const Sojourn__Hello *hello,
                                       char token[SJ_SECRET_TEXT_BYTES], int64_t *namesakes,
                                       sj_error *error);

/* Checks the token of the device with a UUID. Returns SJ_OK and the device's id if the token is
 * valid. Returns SJ_EPERM if the device is unknown, or the token is wrong or revoked. The message
 * and the time it takes are the same in all three cases. */
SJ_MUST_CHECK sj_status sj_fleet_check(sj_fleet *fleet, const ProtobufCBinaryData *uuid,
                                       const char *token, int64_t *device_id, sj_error *error);

/* Revokes a device's token. Open connections of the device lose their rights, too. `by` is the user
 * who asks. Returns SJ_ENOTFOUND if the device has no token. */
SJ_MUST_CHECK sj_status sj_fleet_revoke(sj_fleet *fleet, int64_t device_id, const char *by,
                                        sj_error *error);

#endif
