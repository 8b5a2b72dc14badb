/* Reads the calls of a part of a session as spans, for formats that write a call when it has ended.
 * A call whose end is not known ends with its track. */
#ifndef SJ_COLLECTOR_SERVER_EXPORT_SPAN_READER_H
#define SJ_COLLECTOR_SERVER_EXPORT_SPAN_READER_H

#include "collector-server/export/call_events.h"

enum { SJ_TRACE_ID_BYTES = 16 };

typedef struct sj_span {
    const uint8_t *trace_id; /* the uuid of the session, SJ_TRACE_ID_BYTES long */
    const sj_call_track *track;
    const char *name;   /* name of the function */
    const char *ending; /* the column `ending` of `calls` */
    int64_t call_id;
    int64_t parent_id; /* the calling call; 0: none is in the part */
    int64_t start_ns;  /* both since the Unix epoch */
    int64_t end_ns;
} sj_span;

typedef struct sj_span_receiver {
    /* Receives one span. All pointers are valid only during the call. */
    sj_status (*receive)(void *context, const sj_span *span);
    /* The spans of a track have all been received. `track` is valid only during the call. */
    sj_status (*end_track)(void *context, const sj_call_track *track);
} sj_span_receiver;

/* Passes the calls of a part as spans, track by track, callees before their callers. Fails with
 * SJ_EINVAL if the part is a whole session, because readers of spans are not made for every call of
 * a program; `format` names the format in the message. Fails as sj_call_events_read, too. Blocks on
 * the database. */
SJ_MUST_CHECK sj_status sj_spans_read(sqlite3 *database, const sj_call_part *part,
                                      const char *format, const sj_span_receiver *receiver,
                                      void *context, sj_error *error);

#endif
