/* Reports to the store where the code lies that runtimes have generated for methods. */
#ifndef SJ_AGENT_REGISTRY_METHOD_CODE_H
#define SJ_AGENT_REGISTRY_METHOD_CODE_H

#include "agent/planner/generated.h"
#include "agent/session/frame_writer.h"

/* Code of one process that was not reported yet; zeroed means empty. */
typedef struct sj_method_code {
    uint64_t process;
    size_t count, capacity;
    struct {
        uint64_t address;
        uint32_t bytes;
        uint32_t function;
    } * items; /* owned */
} sj_method_code;

/* Notes the code of functions of a process. Reports what was noted if that is much or belongs to
 * another process. SJ_ENOMEM, errors of sj_frame_writer_report. */
SJ_MUST_CHECK sj_status sj_method_code_add(sj_method_code *code, sj_frame_writer *writer,
                                           uint64_t process, const sj_generated_function *functions,
                                           size_t count, uint64_t now_ticks);

/* Reports what was not reported yet. Errors as sj_method_code_add. */
SJ_MUST_CHECK sj_status sj_method_code_report(sj_method_code *code, sj_frame_writer *writer,
                                              uint64_t now_ticks);

void sj_method_code_deinit(sj_method_code *code);

#endif
