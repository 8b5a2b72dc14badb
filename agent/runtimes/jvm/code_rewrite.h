/* Adds probes to the code of one method: a call at its start, one before each return, and one in a
 * handler of all exceptions that leave it.
 *
 *       push id; invokestatic enter            <- start; jumps to the old start lead after it
 *       ...
 *       push id; invokestatic leave; xreturn   <- each return; jumps to it lead to the push
 *       ...
 *       push id; invokestatic unwind; athrow   <- handler of all code between, except the returns
 *
 * In a constructor the handler covers only the code after the call of the other constructor. An
 * earlier handler would leave an uninitialised object behind, which verifiers reject. Values of the
 * method are recorded before its probes (value_code.h). */
#ifndef SJ_AGENT_RUNTIMES_JVM_CODE_REWRITE_H
#define SJ_AGENT_RUNTIMES_JVM_CODE_REWRITE_H

#include "agent/runtimes/jvm/big_endian.h"
#include "agent/runtimes/jvm/class_file.h"
#include "agent/runtimes/jvm/value_code.h"

/* The reason why a method has no probes. */
typedef enum sj_java_skip {
    SJ_JAVA_REWRITTEN = 0,
    SJ_JAVA_SKIP_NOT_WANTED,
    SJ_JAVA_SKIP_NO_CODE,   /* Abstract or native. */
    SJ_JAVA_SKIP_DAMAGED,   /* The code or its tables are malformed. */
    SJ_JAVA_SKIP_TOO_LARGE, /* More than 64 KiB with probes. */
    SJ_JAVA_SKIP_FAR_JUMP,  /* A jump would exceed 32 KiB with probes. */
    SJ_JAVA_SKIP_POOL_FULL, /* The pool is full: the method's id cannot be added. */
    SJ_JAVA_SKIP_FIXED,     /* The class must not be changed. */
    SJ_JAVA_SKIPS
} sj_java_skip;

/* The constants of the probes, appended to those of the class. */
typedef struct sj_probe_constants {
    uint16_t enter;
    uint16_t leave;
    uint16_t unwind;
    uint16_t throwable;
    uint16_t stack_map_name;
    /* Their `id` is that of the current method. The others are 0 if no method has values. */
    sj_value_constants values;
} sj_probe_constants;

/* Appends the new contents of the Code attribute of `method`, which records `values`, to `output`.
 * If it returns a reason to skip the method, `output` is unchanged. Out of memory is reported as
 * SJ_JAVA_SKIP_DAMAGED. Thread-safe. */
sj_java_skip sj_code_rewrite(const sj_class_file *file, const sj_class_method *method,
                             uint32_t function, const sj_java_values *values,
                             const sj_probe_constants *constants, sj_be_output *output);

#endif
