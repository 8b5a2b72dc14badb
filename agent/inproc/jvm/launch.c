/* Design notes
 *
 * Launchers find JNI_CreateJavaVM by dlsym, so its code is patched, not a pointer to it. A process
 * creates only one JVM. So the replacement restores the original code and calls it; no instruction
 * has to be relocated. The option is not set by JAVA_TOOL_OPTIONS, because the JVM prints a line
 * then. */
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
static uint64_t hooked_address; /* Address of JNI_CreateJavaVM; 0 until it was patched. */
static _Atomic uint32_t is_patched;
static create_vm original;
static JavaVMOption options[OPTIONS_MAX];
static char tracer_option[] = SJ_TRACER_OPTION;
static char option_text[sizeof(agent_option) + PATH_BYTES];

/* Writes the option with the path of the agent's file. Returns false if the file cannot be read. */
static bool write_agent_option(void)
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

/* True if the policy asks for the JVM's own tracing functions and they could be redirected to us.
 */
static bool has_tracer(void)
{
    Dl_info info;
    return (sj_jvm.runtimes & SJ_LINK_RUNTIME_JVM_TRACER) != 0 &&
           dladdr((const void *)(uintptr_t)hooked_address, &info) != 0 &&
           info.dli_fname[0] == '/' && strlen(info.dli_fname) < PATH_BYTES &&
           sj_tracer_start(info.dli_fname, (uint64_t)(uintptr_t)info.dli_fbase);
}

static jint create_with_agent(JavaVM **vm, void **env, void *arguments)
{
    const JavaVMInitArgs *program_arguments = arguments;
    uint32_t expected = 1;
    /* If two threads create a JVM at the same time, the second call is not changed. */
    if (!atomic_compare_exchange_strong(&is_patched, &expected, 0)) {
        return original(vm, env, arguments);
    }
    if (sj_hooks_unpatch(&hook) != SJ_OK) {
        return JNI_ERR;
    }
    if (program_arguments == NULL || program_arguments->nOptions < 0 ||
        program_arguments->nOptions > OPTIONS_MAX - OWN_OPTIONS || !write_agent_option() ||
        !sj_recorder_is_armed()) {
        return original(vm, env, arguments);
    }
    JavaVMInitArgs extended_arguments = *program_arguments;
    if (program_arguments->nOptions != 0) {
        memcpy(options, program_arguments->options,
               (size_t)program_arguments->nOptions * sizeof(*options));
    }
    options[extended_arguments.nOptions++] = (JavaVMOption){.optionString = option_text};
    if (has_tracer()) {
        options[extended_arguments.nOptions++] = (JavaVMOption){.optionString = tracer_option};
    }
    extended_arguments.options = options;
    const jint result = original(vm, env, &extended_arguments);
    /* If the JVM failed before it loaded the agent, it may have refused the options: try without.
     */
    return result == JNI_OK || atomic_load(&sj_jvm.is_loaded) != 0 ? result
                                                                   : original(vm, env, arguments);
}

void sj_jvm_watch_for_launch(void)
{
    uint8_t code[SJ_RETURN_PATCH_BYTES];
    if (hooked_address != 0 || sj_jvm.jvmti != NULL) {
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
        hooked_address = address;
    } else {
        atomic_store(&is_patched, 0);
    }
}
