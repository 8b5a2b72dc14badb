/* The secret of a session: 32 random bytes beside its spool, shown to the collector with each HELLO
 * for it. A collector that asks for no tokens decides by it who may write to the session. */
#ifndef SJ_AGENT_UPLINK_SPOOL_SECRET_H
#define SJ_AGENT_UPLINK_SPOOL_SECRET_H

#include "proto/base/error.h"

#include <stdint.h>

enum { SJ_SPOOL_SECRET_BYTES = 32 };

/* sj_spool_secret_read reads `<directory>/secret`, which it makes (0600, on disk when it returns)
 * when it is not there. The spool's owner only. Blocking. SJ_EIO. */
SJ_MUST_CHECK sj_status sj_spool_secret_read(const char *directory,
                                             uint8_t secret[SJ_SPOOL_SECRET_BYTES],
                                             sj_error *error);

/* sj_spool_secret_remove deletes it, with the rest of the spool. */
void sj_spool_secret_remove(const char *directory);

#endif
