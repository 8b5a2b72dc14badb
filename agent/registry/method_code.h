/* Reports to the store the addresses of code that runtimes have generated for methods. */
#ifndef SJ_AGENT_REGISTRY_METHOD_CODE_H
#define SJ_AGENT_REGISTRY_METHOD_CODE_H

#include "agent/planner/generated.h"
#include "agent/session/frame_writer.h"

/* Code of one process that is not reported yet; zeroed means empty. */
typedef struct sj_method_code {
    uint64_t process;
    size_t count, capacity;
    struct {
        uint64_t address;
        uint32_t bytes;
        uint32_t function;
    } * items; /* owned */
} sj_method_code;

/* Stores the code of functions of a process for a later report. If the stored code belongs to
 * another process, reports it before. Also reports the stored code if it fills a report. Returns
 * SJ_ENOMEM, or errors of sj_frame_writer_report. */
SJ_MUST_CHECK sj_status sj_method_code_add(sj_method_code *code, sj_frame_writer *writer,
                                           uint64_t process, const sj_generated_function *functions,
                                           size_t count, uint64_t now_ticks);

/* Reports the stored code. Returns the errors of sj_method_code_add. */
SJ_MUST_CHECK sj_status sj_method_code_report(sj_method_code *code, sj_frame_writer *writer,
                                              uint64_t now_ticks);

void sj_method_code_deinit(sj_method_code *code);

#endif
