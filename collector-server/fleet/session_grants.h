/* Passes, also called grants: each lets one device send frames. They are in memory, so that each
 * frame of each connection can be checked.
 *
 * A pass is a number: the id of the event that gave a device its token (table `token_events`). It
 * is valid until the device's token is revoked, or the device enrols again. Thread-safe, but only
 * one thread at a time may call sj_session_grants_renew. */
#ifndef SJ_COLLECTOR_SERVER_FLEET_SESSION_GRANTS_H
#define SJ_COLLECTOR_SERVER_FLEET_SESSION_GRANTS_H

#include "collector-server/fleet/secret.h"
#include "proto/base/ids.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct sj_session_grants sj_session_grants;

/* Returns a set without passes, or NULL if out of memory. */
sj_session_grants *sj_session_grants_new(void);
void sj_session_grants_free(sj_session_grants *passes);

/* If the database has new events, reads all valid passes again and returns true. Returns false if
 * there are no new events, or on an error; after an error, the set is unchanged and the next call
 * tries again. */
bool sj_session_grants_renew(sj_session_grants *passes, sqlite3 *database);

/* Returns the pass of the device with this token. Returns 0 if the device is unknown or revoked,
 * or has another token. The time does not depend on how much of a wrong token is correct. Does
 * not read the database. */
int64_t sj_session_grants_judge(sj_session_grants *passes, const uint8_t uuid[SJ_DEVICE_ID_BYTES],
                                const uint8_t token_hash[SJ_SECRET_HASH_BYTES]);

/* True if a pass is valid. */
bool sj_session_grants_has(sj_session_grants *passes, int64_t pass);

/* sj_session_grants_of_device returns the valid pass of a device, or 0 if the device has none.
 * sj_session_grants_has_device returns true if the device has a valid pass. */
int64_t sj_session_grants_of_device(sj_session_grants *passes, int64_t device_id);
bool sj_session_grants_has_device(sj_session_grants *passes, int64_t device_id);

#endif
