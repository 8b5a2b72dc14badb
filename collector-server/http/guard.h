/* Who may speak to the server: pure checks of strings that come from a peer. Any thread. */
#ifndef SJ_COLLECTOR_SERVER_HTTP_GUARD_H
#define SJ_COLLECTOR_SERVER_HTTP_GUARD_H

#include <stdbool.h>
#include <stdint.h>

/* sj_guard_host_allowed returns whether a Host header names the loopback and, where it names a
 * port, ours. NULL (no header) is refused: a rebound DNS name is only seen here. */
bool sj_guard_host_allowed(const char *host, uint16_t port);

/* sj_guard_origin_allowed returns whether an Origin header is the dashboard's own. */
bool sj_guard_origin_allowed(const char *origin, uint16_t port);

/* sj_guard_origin_is_host returns whether an Origin header is that of the host that the request
 * itself names, by TLS: what a server asks that is reached by names that it cannot know. */
bool sj_guard_origin_is_host(const char *origin, const char *host);

/* sj_guard_address_is_loopback returns whether a numeric address is 127.0.0.0/8, ::1 or the word
 * "localhost". */
bool sj_guard_address_is_loopback(const char *address);

#endif
