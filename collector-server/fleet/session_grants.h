/* Passes: who may speak at present, in memory, so that each frame of each connection can be judged.
 *
 * A pass is the number of the event by which a device was let in (table `token_events`); it is
 * valid until the device is thrown out or enrols again. Any thread; sj_session_grants_renew one at
 * a time.
 */
#ifndef SJ_COLLECTOR_SERVER_FLEET_SESSION_GRANTS_H
#define SJ_COLLECTOR_SERVER_FLEET_SESSION_GRANTS_H

#include "collector-server/fleet/secret.h"
#include "proto/base/ids.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct sj_session_grants sj_session_grants;

/* sj_session_grants_new begins with none. NULL: out of memory. */
sj_session_grants *sj_session_grants_new(void);
void sj_session_grants_free(sj_session_grants *passes);

/* sj_session_grants_renew reads the events that came since; true when there were any. */
bool sj_session_grants_renew(sj_session_grants *passes, sqlite3 *database);

/* sj_session_grants_judge gives the pass and the device of who shows this token; 0: the device is
 * not known, thrown out, or has another token. Takes as long in every case; asks no database. */
int64_t sj_session_grants_judge(sj_session_grants *passes, const uint8_t uuid[SJ_DEVICE_ID_BYTES],
                                const uint8_t token_hash[SJ_SECRET_HASH_BYTES]);

/* sj_session_grants_has returns whether a pass is valid. */
bool sj_session_grants_has(sj_session_grants *passes, int64_t pass);

/* sj_session_grants_of_device returns the pass of a device, or 0; sj_session_grants_has_device
 * whether there is one.
 */
int64_t sj_session_grants_of_device(sj_session_grants *passes, int64_t device_id);
bool sj_session_grants_has_device(sj_session_grants *passes, int64_t device_id);

#endif
