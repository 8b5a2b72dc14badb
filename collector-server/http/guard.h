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

/* sj_guard_site_allowed returns whether a browser may send a request, by its headers
 * Sec-Fetch-Site, Sec-Fetch-Mode and Sec-Fetch-Dest (NULL: not sent). Pages of other sites, and of
 * other ports of this host, may lead to a page of the dashboard (`is_page`) by a link and ask for
 * nothing else. Without Sec-Fetch-Site the request is allowed: the token decides. */
bool sj_guard_site_allowed(const char *site, const char *mode, const char *destination,
                           bool is_page);

/* sj_guard_site_is_own returns whether Sec-Fetch-Site says that the dashboard or the user made a
 * request; true for NULL. */
bool sj_guard_site_is_own(const char *site);

/* sj_guard_address_is_loopback returns whether a numeric address is 127.0.0.0/8, ::1 or the word
 * "localhost". */
bool sj_guard_address_is_loopback(const char *address);

#endif
