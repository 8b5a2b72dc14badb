/* Reports, from debug data, the types of the parameters and results whose values are recorded
 * (monitor "values", kind "types"). The SQL view value_types shows these reports. */
#ifndef SJ_AGENT_REGISTRY_TYPES_REPORT_H
#define SJ_AGENT_REGISTRY_TYPES_REPORT_H

#include "agent/objfile/function_types.h"
#include "agent/session/frame_writer.h"

#include <jansson.h>

typedef struct sj_types_report {
    sj_frame_writer *writer; /* borrowed */
    uint32_t module;
    json_t *functions; /* collected for the next report; owned */
    size_t bytes;      /* upper bound of the size of `functions` as text */
} sj_types_report;

/* Begins reports about the module with number `module`. Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_types_report_begin(sj_types_report *report, sj_frame_writer *writer,
                                              uint32_t module);

/* Adds the function at `offset`. Returns SJ_ENOMEM or SJ_EIO. */
SJ_MUST_CHECK sj_status sj_types_report_add(sj_types_report *report, uint64_t offset,
                                            const sj_typed_function *typed);

/* Sends the remaining functions, unless `status` is an earlier error. Frees the report. Returns
 * `status` or the error of sending. The writer counts reports that the spool has no space for. */
SJ_MUST_CHECK sj_status sj_types_report_end(sj_types_report *report, sj_status status);

#endif
