/* Reports changes of the database to browsers, by event streams (text/event-stream). One thread
 * reads the database twice a second and sends each change to the streams that report it. The number
 * of streams is limited. Streams have no queues: if a browser reads too slowly to get each message,
 * it gets a message to reload. */
#ifndef SJ_COLLECTOR_SERVER_HTTP_EVENT_HUB_H
#define SJ_COLLECTOR_SERVER_HTTP_EVENT_HUB_H

#include "collector-server/http/connection_watch.h"
#include "collector-server/http/database_pool.h"
#include "collector-server/http/route.h"

#include <microhttpd.h>

typedef struct sj_event_hub sj_event_hub;

enum { SJ_EVENT_STREAMS_MAX = 64, SJ_EVENT_POLL_MS = 500 };

/* Starts the thread, which also calls sj_connection_watch_sweep. Borrows `watch`, `databases` and
 * `login`. Returns SJ_ENOMEM or SJ_EIO. */
SJ_MUST_CHECK sj_status sj_event_hub_start(sj_database_pool *databases, sj_connection_watch *watch,
                                           const sj_login *login, sj_event_hub **hub,
                                           sj_error *error);

/* sj_event_hub_stop ends the thread and every stream. Call it before MHD_stop_daemon, which cannot
 * end suspended connections, and sj_event_hub_free after it. */
void sj_event_hub_stop(sj_event_hub *hub);
void sj_event_hub_free(sj_event_hub *hub);

/* Queues a text/event-stream response, or 503 if there are SJ_EVENT_STREAMS_MAX streams. The
 * stream ends when the token of the request's visitor is revoked or expires. `session` is the id
 * of the only session that the stream reports, or 0 for all. Call it on any thread of
 * libmicrohttpd. */
enum MHD_Result sj_event_hub_subscribe(sj_event_hub *hub, const sj_request *request,
                                       int64_t session);

#endif
