/* Design notes
 *
 * Launchers find JNI_CreateJavaVM by dlsym, so its code is patched, not a reference to it. The
 * replacement first restores the code: a process creates one JVM, so no instruction has to be
 * moved. Unlike JAVA_TOOL_OPTIONS, the extra option prints no line. */
#include "agent/inproc/jvm/internal.h"
#include "agent/inproc/jvm/tracer.h"

#include "agent/inproc/hooks/arch.h"
#include "agent/inproc/hooks/definition.h"
#include "agent/inproc/hooks/hooks.h"
#include "agent/inproc/hooks/libc_calls.h"
#include "agent/inproc/recorder/recorder.h"
#include "agent/inproc/recorder/sys.h"

#include <fcntl.h>
#include <string.h>

enum { OPTIONS_MAX = 1024, OWN_OPTIONS = 2, PATH_BYTES = 4096 };

typedef jint (*create_vm)(JavaVM **vm, void **env, void *arguments);

static const char agent_option[] = "-agentpath:";
static sj_hooked_module hook;
static uint64_t hooked; /* Address of JNI_CreateJavaVM once it was patched. */
static _Atomic uint32_t is_patched;
static create_vm original;
static JavaVMOption options[OPTIONS_MAX];
static char tracer_option[] = SJ_TRACER_OPTION;
static char option_text[sizeof(agent_option) + PATH_BYTES];

static bool name_agent(void)
{
    Dl_info info;
    if (dladdr(&hook, &info) == 0 || info.dli_fname[0] != '/' ||
        strlen(info.dli_fname) >= PATH_BYTES ||
        SJ_SYS(SYS_faccessat, AT_FDCWD, info.dli_fname, 4 /* R_OK */, 0, 0, 0) != 0) {
        return false;
    }
    memcpy(option_text, agent_option, sizeof(agent_option));
    memcpy(option_text + sizeof(agent_option) - 1, info.dli_fname, strlen(info.dli_fname) + 1);
    return true;
}

/* True if the policy asks for the JVM's own tracing functions, and they jump to us. */
static bool has_tracer(void)
{
    Dl_info info;
    return (sj_jvm.runtimes & SJ_LINK_RUNTIME_JVM_TRACER) != 0 &&
           dladdr((const void *)(uintptr_t)hooked, &info) != 0 && info.dli_fname[0] == '/' &&
           strlen(info.dli_fname) < PATH_BYTES &&
           sj_tracer_start(info.dli_fname, (uint64_t)(uintptr_t)info.dli_fbase);
}

static jint create_with_agent(JavaVM **vm, void **env, void *arguments)
{
    const JavaVMInitArgs *given = arguments;
    uint32_t expected = 1;
    /* If two threads call it at the same time, the second one gets a JVM without us. */
    if (!atomic_compare_exchange_strong(&is_patched, &expected, 0)) {
        return original(vm, env, arguments);
    }
    if (sj_hooks_unpatch(&hook) != SJ_OK) {
        return JNI_ERR;
    }
    if (given == NULL || given->nOptions < 0 || given->nOptions > OPTIONS_MAX - OWN_OPTIONS ||
        !name_agent() || !sj_recorder_is_armed()) {
        return original(vm, env, arguments);
    }
    JavaVMInitArgs longer = *given;
    if (given->nOptions != 0) {
        memcpy(options, given->options, (size_t)given->nOptions * sizeof(*options));
    }
    options[longer.nOptions++] = (JavaVMOption){.optionString = option_text};
    if (has_tracer()) {
        options[longer.nOptions++] = (JavaVMOption){.optionString = tracer_option};
    }
    longer.options = options;
    const jint result = original(vm, env, &longer);
    /* A JVM that does not know the option refuses it before it does anything. */
    return result == JNI_OK || atomic_load(&sj_jvm.is_loaded) != 0 ? result
                                                                   : original(vm, env, arguments);
}

void sj_jvm_watch_for_launch(void)
{
    uint8_t code[SJ_RETURN_PATCH_BYTES];
    if (hooked != 0 || sj_jvm.jvmti != NULL) {
        return;
    }
    const uint64_t address = sj_definition_find("JNI_CreateJavaVM", NULL);
    if (address == 0) {
        return;
    }
    memcpy(code, (const void *)(uintptr_t)address, sizeof(code));
    original = (create_vm)(uintptr_t)address;
    atomic_store(&is_patched, 1);
    if (sj_hooks_redirect(address, code, sizeof(code), (uint64_t)(uintptr_t)&create_with_agent,
                          false, &hook) == SJ_OK) {
        hooked = address;
    } else {
        atomic_store(&is_patched, 0);
    }
}
