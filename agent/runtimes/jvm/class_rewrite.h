/* Adds probes to the methods of a class. */
#ifndef SJ_AGENT_RUNTIMES_JVM_CLASS_REWRITE_H
#define SJ_AGENT_RUNTIMES_JVM_CLASS_REWRITE_H

#include "agent/runtimes/jvm/class_file.h"
#include "agent/runtimes/jvm/code_rewrite.h"

#include <stdbool.h>

/* The class of the probes, which the agent defines in the boot loader. The argument of its static
 * native methods enter, leave and unwind is the function id. */
#define SJ_PROBE_CLASS "java/sojourn/Probe"

typedef struct sj_class_rewrite_request {
    const sj_class_file *file;
    uint32_t first_function; /* Method i has the function id first_function + i. */
    /* True if the method gets probes. NULL if all methods do. */
    bool (*wanted)(void *context, const sj_class_method *method);
    const sj_java_values *values; /* [method_count] Values to record; NULL if none are recorded. */
    void *context;
} sj_class_rewrite_request;

/* A zeroed result is empty. */
typedef struct sj_class_rewrite_result {
    uint8_t *bytes; /* The new class file. NULL if no method gets probes. */
    size_t size;
    uint8_t *skips;     /* [method_count] The sj_java_skip of each method. */
    uint32_t rewritten; /* Number of methods with probes. */
} sj_class_rewrite_result;

/* Writes the class file with probes. The caller calls sj_class_rewrite_deinit, even after an error.
 * Returns SJ_EEXIST if the class has probes already, or SJ_ENOMEM. Thread-safe. */
SJ_MUST_CHECK sj_status sj_class_rewrite(const sj_class_rewrite_request *request,
                                         sj_class_rewrite_result *result);
void sj_class_rewrite_deinit(sj_class_rewrite_result *result);

#endif
