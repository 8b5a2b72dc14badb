/* Design notes
 *
 * One frame of the runtime lies between the method and the callback. It has saved registers of the
 * method, and its unwind table says where. A handler of the method needs these registers. The touch
 * is the callback's first instruction, so nothing of the call has been recorded yet. The stack can
 * end in the runtime's own function only if a method's frame is larger than the touched range. */
#include "agent/inproc/core/mono_overflow.h"

#include "agent/inproc/core/find_object.h"
#include "agent/inproc/hooks/native_frame.h"
#include "agent/inproc/mono/mono.h"

#include SJ_ARCH_FILE(core, signal_context.h)

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

/* Registers at the thread's latest fault, before they were changed. */
static __thread uint64_t changed[SJ_NATIVE_REGISTERS] __attribute__((tls_model("initial-exec")));

#if defined(DLFO_STRUCT_HAS_EH_DBASE)

static bool find_module(uint64_t pc, sj_native_module *module)
{
    int (*find)(void *address, struct dl_find_object *result);
    struct dl_find_object found;
    memcpy(&find, &sj_find_object_real, sizeof(find));
    if (find == NULL ||
        find((void *)(uintptr_t)pc, &found) != 0) { /* NOLINT(performance-no-int-to-ptr) */
        return false;
    }
    *module = (sj_native_module){.low = (uint64_t)(uintptr_t)found.dlfo_map_start,
                                 .high = (uint64_t)(uintptr_t)found.dlfo_map_end,
                                 .index = (uint64_t)(uintptr_t)found.dlfo_eh_frame};
    return true;
}

#else

static bool find_module(uint64_t pc, sj_native_module *module)
{
    (void)pc;
    (void)module;
    return false;
}

#endif

/* Changes the registers from the callback's first instructions to the runtime's, after its call. */
static void leave_callback(uint64_t registers[SJ_NATIVE_REGISTERS])
{
    if (SJ_MACHINE_CALL_PUSHES) {
        registers[SJ_NATIVE_PC] = *(const uint64_t *)(uintptr_t)registers[SJ_NATIVE_SP];
        registers[SJ_NATIVE_SP] += sizeof(uint64_t);
    } else {
        registers[SJ_NATIVE_PC] = registers[SJ_NATIVE_RETURN];
    }
}

/* Changes the registers to the method's, after its call of the runtime. */
static bool leave_to_method(uint64_t registers[SJ_NATIVE_REGISTERS])
{
    const uint64_t touch = (uint64_t)(uintptr_t)&sj_arch_mono_enter;
    const uint64_t caller = atomic_load(&sj_mono_enter_caller);
    const bool is_touch = registers[SJ_NATIVE_PC] - touch < SJ_MONO_TOUCH_CODE_BYTES;
    sj_native_module module;
    if (is_touch) {
        leave_callback(registers);
    }
    if (!find_module(registers[SJ_NATIVE_PC], &module)) {
        return false;
    }
    if (!is_touch && (caller == 0 || sj_native_function(&module, registers[SJ_NATIVE_PC]) !=
                                         sj_native_function(&module, caller))) {
        return false;
    }
    return sj_native_leave(&module, is_touch, registers);
}

bool sj_mono_overflow_show(uint64_t signal, const siginfo_t *info, void *context,
                           sj_saved_context *saved)
{
    uint64_t registers[SJ_NATIVE_REGISTERS];
    uint64_t found[SJ_NATIVE_REGISTERS];
    if ((signal != SIGSEGV && signal != SIGBUS) || info->si_code <= 0 || !sj_mono_is_registered()) {
        return false;
    }
    sj_context_get_all(context, registers);
    memcpy(found, registers, sizeof(found));
    const uint64_t address = (uint64_t)(uintptr_t)info->si_addr;
    if (registers[SJ_NATIVE_SP] - address > SJ_MONO_TOUCHED_BYTES || !leave_to_method(registers)) {
        return false;
    }
    /* This address is inside the call; a try block may begin after it. */
    registers[SJ_NATIVE_PC]--;
    memcpy(changed, found, sizeof(changed));
    sj_context_set_all(context, registers);
    saved->magic = SJ_SAVED_CONTEXT_MAGIC;
    saved->shown_pc = registers[SJ_NATIVE_PC];
    saved->shown_sp = registers[SJ_NATIVE_SP];
    return true;
}

void sj_mono_overflow_return(void *context, const sj_saved_context *saved)
{
    if (changed[SJ_NATIVE_PC] == saved->pc && changed[SJ_NATIVE_SP] == saved->sp) {
        sj_context_set_all(context, changed);
        memset(changed, 0, sizeof(changed));
    }
}
