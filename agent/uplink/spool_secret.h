/* The secret of a session: 32 random bytes beside its spool. Each HELLO frame contains it. A
 * collector without tokens uses it to decide which device may write to the session. */
#ifndef SJ_AGENT_UPLINK_SPOOL_SECRET_H
#define SJ_AGENT_UPLINK_SPOOL_SECRET_H

#include "proto/base/error.h"

#include <stdint.h>

enum { SJ_SPOOL_SECRET_BYTES = 32 };

/* Reads `<directory>/secret`. Creates it if missing (0600, on disk when it returns). Only the
 * spool's owner may call it. Blocking. Returns SJ_EIO if it fails. */
SJ_MUST_CHECK sj_status sj_spool_secret_read(const char *directory,
                                             uint8_t secret[SJ_SPOOL_SECRET_BYTES],
                                             sj_error *error);

/* Deletes the secret with the rest of the spool. */
void sj_spool_secret_remove(const char *directory);

#endif
