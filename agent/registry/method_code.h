/* Where the code lies that runtimes have generated for methods, for the store. */
#ifndef SJ_AGENT_REGISTRY_METHOD_CODE_H
#define SJ_AGENT_REGISTRY_METHOD_CODE_H

#include "agent/planner/generated.h"
#include "agent/session/frame_writer.h"

/* What was not reported yet; of one process. Zeroed: nothing. */
typedef struct sj_method_code {
    uint64_t process;
    size_t count, capacity;
    struct {
        uint64_t address;
        uint32_t bytes;
        uint32_t function;
    } * items; /* owned */
} sj_method_code;

/* sj_method_code_add notes the code of functions of a process, and reports what there is as soon as
 * it is much or of another process. SJ_ENOMEM; errors of sj_frame_writer_report. */
SJ_MUST_CHECK sj_status sj_method_code_add(sj_method_code *code, sj_frame_writer *writer,
                                           uint64_t process, const sj_generated_function *functions,
                                           size_t count, uint64_t now_ticks);

/* sj_method_code_report reports what was not reported yet. Errors as above. */
SJ_MUST_CHECK sj_status sj_method_code_report(sj_method_code *code, sj_frame_writer *writer,
                                              uint64_t now_ticks);

void sj_method_code_deinit(sj_method_code *code);

#endif
