/* Puts probes into the code of one method: a call at its start, one before each return, and one in
 * a handler of all exceptions that leave it.
 *
 *       push id; invokestatic enter            <- start; jumps to the old start lead behind it
 *       ...
 *       push id; invokestatic leave; xreturn   <- each return; jumps to it lead to the push
 *       ...
 *       push id; invokestatic unwind; athrow   <- handler of everything between, but the returns
 *
 * In a constructor the handler covers what follows the call of the other constructor only: before
 * it, a handler would have to leave an object behind that is not initialised, which no verifier
 * accepts. Values of the method are recorded in front of its probes (value_code.h). */
#ifndef SJ_AGENT_RUNTIMES_JVM_CODE_REWRITE_H
#define SJ_AGENT_RUNTIMES_JVM_CODE_REWRITE_H

#include "agent/runtimes/jvm/big_endian.h"
#include "agent/runtimes/jvm/class_file.h"
#include "agent/runtimes/jvm/value_code.h"

/* Why a method has no probes. */
typedef enum sj_java_skip {
    SJ_JAVA_REWRITTEN = 0,
    SJ_JAVA_SKIP_NOT_WANTED,
    SJ_JAVA_SKIP_NO_CODE,   /* abstract or native */
    SJ_JAVA_SKIP_DAMAGED,   /* code or its tables follow no format */
    SJ_JAVA_SKIP_TOO_LARGE, /* more than 64 KiB with probes */
    SJ_JAVA_SKIP_FAR_JUMP,  /* a jump would exceed 32 KiB with probes */
    SJ_JAVA_SKIP_POOL_FULL, /* no constant is left for the method's id */
    SJ_JAVA_SKIP_FIXED,     /* its class stays what it is */
    SJ_JAVA_SKIPS
} sj_java_skip;

/* The constants that probes use, appended to the class's own. */
typedef struct sj_probe_constants {
    uint16_t enter;
    uint16_t leave;
    uint16_t unwind;
    uint16_t throwable;
    uint16_t stack_map_name;
    sj_value_constants values; /* their `id` is that of the method at work; the others are 0 where
                                  no method has values */
} sj_probe_constants;

/* sj_code_rewrite appends the contents of the new Code attribute of `method`, which records
 * `values`, to `output`. Returns
 * the skip; `output` is unchanged then. SJ_JAVA_SKIP_DAMAGED also without memory. Any thread. */
sj_java_skip sj_code_rewrite(const sj_class_file *file, const sj_class_method *method,
                             uint32_t function, const sj_java_values *values,
                             const sj_probe_constants *constants, sj_be_output *output);

#endif
