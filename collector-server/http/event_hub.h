/* Reports to browsers what changed: one thread looks at the database twice a second and hands each
 * change to every event stream. Streams are bounded in number and hold no queue of their own: one
 * that is too slow to take each message gets a message to reload. */
#ifndef SJ_COLLECTOR_SERVER_HTTP_EVENT_HUB_H
#define SJ_COLLECTOR_SERVER_HTTP_EVENT_HUB_H

#include "collector-server/http/connection_watch.h"
#include "collector-server/http/database_pool.h"

#include <microhttpd.h>

typedef struct sj_event_hub sj_event_hub;

enum { SJ_EVENT_STREAMS_MAX = 64, SJ_EVENT_POLL_MS = 500 };

/* sj_event_hub_start starts the thread, which also sweeps the watch (borrowed, as `databases`). */
SJ_MUST_CHECK sj_status sj_event_hub_start(sj_database_pool *databases, sj_connection_watch *watch,
                                           sj_event_hub **hub, sj_error *error);

/* sj_event_hub_stop ends the thread and every stream; call it before MHD_stop_daemon, which cannot
 * end suspended connections. sj_event_hub_free after it. */
void sj_event_hub_stop(sj_event_hub *hub);
void sj_event_hub_free(sj_event_hub *hub);

/* sj_event_hub_subscribe queues an endless text/event-stream response; 503 when there are
 * SJ_EVENT_STREAMS_MAX streams. `session` is the id of the one session that the stream is about;
 * 0: all. Any thread of libmicrohttpd. */
enum MHD_Result sj_event_hub_subscribe(sj_event_hub *hub, struct MHD_Connection *connection,
                                       int64_t session);

#endif
