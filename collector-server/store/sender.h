/* The sender of a frame: what its connection proved, and thus which sessions it may write. */
#ifndef SJ_COLLECTOR_SERVER_STORE_SENDER_H
#define SJ_COLLECTOR_SERVER_STORE_SENDER_H

#include <stdbool.h>
#include <stdint.h>

enum { SJ_SENDER_DEVICE_BYTES = 16, SJ_SENDER_SECRET_BYTES = 32 };

/* The sender of a frame. A zeroed one is the collector's own process (the embedded collector),
 * which may write everything. */
typedef struct sj_sender {
    /* The frame came over a connection. If not, the other fields have no meaning. */
    bool is_peer;
    /* The sender showed the token of the device. Without a token, the session's secret decides. */
    bool has_token;
    /* The grant that admitted the sender, see fleet/session_grants.h. 0: no tokens are required. */
    int64_t grant;
    uint8_t device[SJ_SENDER_DEVICE_BYTES];
    /* digest of the session's secret; all zeroes: no secret */
    uint8_t secret[SJ_SENDER_SECRET_BYTES];
} sj_sender;

#endif
