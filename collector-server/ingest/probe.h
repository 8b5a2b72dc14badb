/* Asks a collector's own address, to see whether the collector still answers there. */
#ifndef SJ_COLLECTOR_SERVER_INGEST_PROBE_H
#define SJ_COLLECTOR_SERVER_INGEST_PROBE_H

#include <stdbool.h>

typedef struct sj_probe sj_probe;

/* Makes a probe of `url`, which may have "*" as its host. `certificate` is the server's, for
 * tls+tcp (PEM). Both are borrowed until sj_probe_free. Returns NULL if memory is short. */
sj_probe *sj_probe_new(const char *url, const char *certificate);

/* Sends a PING over a new connection. True if an answer comes. Sending and receiving may each take
 * `timeout_ms`, and closing the connection 5 s. If NNG does not close it, all later PINGs of the
 * probe use one other connection. Blocking; one thread at a time. */
bool sj_probe_is_answered(sj_probe *probe, int timeout_ms);

/* Frees a probe. NULL is allowed. Blocks for at most 5 s. */
void sj_probe_free(sj_probe *probe);

#endif
