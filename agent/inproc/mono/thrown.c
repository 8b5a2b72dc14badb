/* Design notes
 *
 * The runtime says that a call is left by an exception, not by which. It reports each throw, from
 * the function that then unwinds: so the exception that unwinds now is the last one that was thrown
 * from about here. One that a handler threw meanwhile, and that has been caught, was thrown from
 * far below. */
#include "agent/inproc/mono/internal.h"

#include "agent/abi/record.h"
#include "agent/inproc/recorder/values.h"

#include <string.h>

enum {
    THROWN_MAX = 4,   /* each in a handler of the one before */
    NEAR_BYTES = 1024 /* callbacks of one unwinding lie closer; a throw in a handler needs more */
};

typedef struct thrown_exception {
    void *class;
    uint64_t stack;
    bool is_interruption;
} thrown_exception;

static __thread thrown_exception thrown[THROWN_MAX] __attribute__((tls_model("initial-exec")));
static __thread uint32_t thrown_count __attribute__((tls_model("initial-exec")));

/* Raised wherever the thread is, in front of a method's report of its entry, too. */
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
        return false; /* thrown before the attach, or in too many handlers */
    }
    sj_mono_describe_class(&text, thrown[thrown_count - 1].class);
    sj_recorder_text(function, SJ_MANAGED_CALL,
                     sj_value_descriptor(SJ_VALUE_RESULT, SJ_VALUE_THROWN), text.bytes, text.used,
                     text.note);
    return thrown[thrown_count - 1].is_interruption;
}
