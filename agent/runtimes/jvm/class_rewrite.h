/* Puts probes into the methods of a class. */
#ifndef SJ_AGENT_RUNTIMES_JVM_CLASS_REWRITE_H
#define SJ_AGENT_RUNTIMES_JVM_CLASS_REWRITE_H

#include "agent/runtimes/jvm/class_file.h"
#include "agent/runtimes/jvm/code_rewrite.h"

#include <stdbool.h>

/* The class of the probes, which the agent defines in the boot loader; its static native methods
 * enter, leave and unwind take the function's id. */
#define SJ_PROBE_CLASS "java/sojourn/Probe"

typedef struct sj_class_rewrite_request {
    const sj_class_file *file;
    uint32_t first_function; /* id of the first method; method i has first_function + i */
    bool (*wanted)(void *context, const sj_class_method *method); /* NULL: all */
    const sj_java_values *values; /* [method_count]; NULL: of none */
    void *context;
} sj_class_rewrite_request;

/* Zeroed is empty. */
typedef struct sj_class_rewrite_result {
    uint8_t *bytes; /* the new class file; NULL: no method has probes, the class stays as it is */
    size_t size;
    uint8_t *skips;     /* [method_count] sj_java_skip of each method */
    uint32_t rewritten; /* methods with probes */
} sj_class_rewrite_result;

/* sj_class_rewrite makes the new class file. Release the result with sj_class_rewrite_deinit, also
 * after a failure. SJ_EEXIST the class has probes already, SJ_ENOMEM. Any thread. */
SJ_MUST_CHECK sj_status sj_class_rewrite(const sj_class_rewrite_request *request,
                                         sj_class_rewrite_result *result);
void sj_class_rewrite_deinit(sj_class_rewrite_result *result);

#endif
