/* The sender of a frame: what its connection proved, and so which sessions it may write. */
#ifndef SJ_COLLECTOR_SERVER_STORE_SENDER_H
#define SJ_COLLECTOR_SERVER_STORE_SENDER_H

#include <stdbool.h>
#include <stdint.h>

enum { SJ_SENDER_DEVICE_BYTES = 16, SJ_SENDER_SECRET_BYTES = 32 };

/* Zeroed: the collector's own process (the embedded collector), which may write everything. */
typedef struct sj_sender {
    bool is_peer;   /* a connection from outside: the rest holds */
    bool has_token; /* it showed the device's token; else the session's secret decides */
    int64_t grant;  /* by which it was let in, see fleet/session_grants.h; 0: no tokens asked */
    uint8_t device[SJ_SENDER_DEVICE_BYTES];
    uint8_t secret[SJ_SENDER_SECRET_BYTES]; /* digest of the session's secret; zeroes: none */
} sj_sender;

#endif
