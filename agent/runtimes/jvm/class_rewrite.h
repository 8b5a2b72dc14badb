/* Adds probes to the methods of a class. */
#ifndef SJ_AGENT_RUNTIMES_JVM_CLASS_REWRITE_H
#define SJ_AGENT_RUNTIMES_JVM_CLASS_REWRITE_H

#include "agent/runtimes/jvm/class_file.h"
#include "agent/runtimes/jvm/code_rewrite.h"

#include <stdbool.h>

/* The class of the probes. The agent defines it in the boot loader. Its static native methods
 * enter, leave and unwind receive the function's id. */
#define SJ_PROBE_CLASS "java/sojourn/Probe"

typedef struct sj_class_rewrite_request {
    const sj_class_file *file;
    uint32_t first_function; /* Id of the first method. Method i has the id first_function + i. */
    bool (*wanted)(void *context, const sj_class_method *method); /* NULL: all methods. */
    const sj_java_values *values; /* [method_count]. NULL: no values. */
    void *context;
} sj_class_rewrite_request;

/* A zeroed result is empty. */
typedef struct sj_class_rewrite_result {
    /* The new class file. NULL: no method has probes, and the class stays unchanged. */
    uint8_t *bytes;
    size_t size;
    uint8_t *skips;     /* [method_count] the sj_java_skip of each method. */
    uint32_t rewritten; /* Number of methods with probes. */
} sj_class_rewrite_result;

/* Creates the new class file. The caller releases the result with sj_class_rewrite_deinit, also
 * after an error. Returns SJ_EEXIST if the class has probes already, or SJ_ENOMEM. Thread-safe. */
SJ_MUST_CHECK sj_status sj_class_rewrite(const sj_class_rewrite_request *request,
                                         sj_class_rewrite_result *result);
void sj_class_rewrite_deinit(sj_class_rewrite_result *result);

#endif
