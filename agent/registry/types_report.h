/* Reports ("values", "types") of what debug data say of functions whose values are recorded: the
 * store's view `value_types`. */
#ifndef SJ_AGENT_REGISTRY_TYPES_REPORT_H
#define SJ_AGENT_REGISTRY_TYPES_REPORT_H

#include "agent/objfile/function_types.h"
#include "agent/session/frame_writer.h"

#include <jansson.h>

typedef struct sj_types_report {
    sj_frame_writer *writer; /* borrowed */
    uint32_t module;
    json_t *functions; /* gathered for the next report; owned */
    size_t bytes;      /* at most, of `functions` as text */
} sj_types_report;

/* sj_types_report_begin begins reports about the module of that number. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_types_report_begin(sj_types_report *report, sj_frame_writer *writer,
                                              uint32_t module);

/* sj_types_report_add adds the function at `offset`. SJ_ENOMEM, SJ_EIO. */
SJ_MUST_CHECK sj_status sj_types_report_add(sj_types_report *report, uint64_t offset,
                                            const sj_typed_function *typed);

/* sj_types_report_end sends what is left, unless `status` says that something failed before, and
 * frees the report. What a full spool does not take is counted there. */
SJ_MUST_CHECK sj_status sj_types_report_end(sj_types_report *report, sj_status status);

#endif
