/* Design notes
 *
 * The runtime reports that an exception ends a call, but not which exception. It reports each throw
 * in the function that then unwinds the stack. So the current exception is the latest one whose
 * throw was reported at nearly the same stack pointer. An exception that a handler has thrown and
 * caught meanwhile was thrown further down the stack. */
#include "agent/inproc/mono/internal.h"

#include "agent/abi/record.h"
#include "agent/inproc/recorder/values.h"

#include <string.h>

enum {
    THROWN_MAX = 4, /* Maximum number of nested exceptions, each thrown in a handler of another. */
    /* The stack pointers of the callbacks of one unwinding differ by less than this. A throw in a
     * handler is further away. */
    NEAR_BYTES = 1024
};

typedef struct thrown_exception {
    void *class;
    uint64_t stack;
    bool is_interruption;
} thrown_exception;

static __thread thrown_exception thrown[THROWN_MAX] __attribute__((tls_model("initial-exec")));
static __thread uint32_t thrown_count __attribute__((tls_model("initial-exec")));

/* True for exceptions that can be raised at any instruction, even before the entry callback of a
 * method. */
static bool is_interruption(void *class)
{
    static const char *const names[] = {"ThreadAbortException", "StackOverflowException"};
    const char *name = sj_mono_runtime.class_name(class);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

void sj_mono_note_throw(void *exception, uint64_t stack)
{
    while (thrown_count != 0 && thrown[thrown_count - 1].stack <= stack + NEAR_BYTES) {
        thrown_count--;
    }
    if (exception != NULL && thrown_count < THROWN_MAX) {
        void *class = sj_mono_runtime.class_of_object(exception);
        thrown[thrown_count++] = (thrown_exception){
            .class = class, .stack = stack, .is_interruption = is_interruption(class)};
    }
}

bool sj_mono_record_thrown(uint32_t function, uint64_t stack)
{
    sj_value_text text = {0};
    while (thrown_count != 0 && thrown[thrown_count - 1].stack + NEAR_BYTES < stack) {
        thrown_count--;
    }
    if (thrown_count == 0 || thrown[thrown_count - 1].stack > stack + NEAR_BYTES) {
        return false; /* Thrown before the agent was attached, or nested too deeply. */
    }
    sj_mono_describe_class(&text, thrown[thrown_count - 1].class);
    sj_recorder_text(function, SJ_MANAGED_CALL,
                     sj_value_descriptor(SJ_VALUE_RESULT, SJ_VALUE_THROWN), text.bytes, text.used,
                     text.note);
    return thrown[thrown_count - 1].is_interruption;
}
