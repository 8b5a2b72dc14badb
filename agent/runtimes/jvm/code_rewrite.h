/* Adds probes to the code of one method: a call at its start, a call before each return, and a call
 * in a handler of all exceptions that the method does not catch.
 *
 *       push id; invokestatic enter            <- start; jumps to the old start go after it
 *       ...
 *       push id; invokestatic leave; xreturn   <- each return; jumps to the return go to the push
 *       ...
 *       push id; invokestatic unwind; athrow   <- handler of all code between, except the returns
 *
 * In a constructor, the handler covers only the code after the call of this(...) or super(...).
 * Before that call the object is uninitialised, and verifiers reject a handler of such code. Code
 * that records values is inserted before each of these three probes (value_code.h). */
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
    SJ_JAVA_SKIP_POOL_FULL, /* The constant pool is full. */
    SJ_JAVA_SKIP_FIXED,     /* The class cannot be transformed. */
    SJ_JAVA_SKIPS
} sj_java_skip;

/* Indices of the probes' constants, which are appended to the class's constants. */
typedef struct sj_probe_constants {
    uint16_t enter;
    uint16_t leave;
    uint16_t unwind;
    uint16_t throwable;
    uint16_t stack_map_name;
    /* `values.id` is different for each method. The other members of `values` are 0 if no method of
     * the class has values. */
    sj_value_constants values;
} sj_probe_constants;

/* Appends the new content of the Code attribute of `method` to `output`. The new code records
 * `values`. Returns SJ_JAVA_REWRITTEN, or a reason to skip the method; then `output` does not
 * change. If out of memory, returns SJ_JAVA_SKIP_DAMAGED or sets `output->bad`. Thread-safe. */
sj_java_skip sj_code_rewrite(const sj_class_file *file, const sj_class_method *method,
                             uint32_t function, const sj_java_values *values,
                             const sj_probe_constants *constants, sj_be_output *output);

#endif
