/* Reports whose payload is a JSON object in memory. */
#ifndef SJ_AGENT_SESSION_JSON_REPORT_H
#define SJ_AGENT_SESSION_JSON_REPORT_H

#include "agent/session/frame_writer.h"

#include <jansson.h>

/* Sends `report` with `payload` as its JSON, and releases `payload`. Returns SJ_ENOMEM if `payload`
 * is NULL or cannot be written as text. Otherwise returns what sj_frame_writer_report does. */
SJ_MUST_CHECK sj_status sj_json_report_send(sj_frame_writer *writer, sj_report report,
                                            json_t *payload);

#endif
