/* Patches code that Mono's JIT has compiled: sends its bytes to the recorder, which plans the
 * patches. */
#include "agent/inproc/mono/internal.h"

#include "agent/abi/plan.h"
#include "agent/inproc/recorder/recorder.h"
#include "agent/inproc/recorder/sys.h"

#include <linux/memfd.h>

enum { TOKEN_BITS = 24, TOKEN_TABLE = 0x06 };

static _Atomic uint32_t
    compiled_count; /* Number of methods hooked right after their compilation. */

/* Returns false if not all bytes can be written, for example because the code was unmapped. */
static bool write_bytes(int file, const void *bytes, uint64_t size, uint64_t at)
{
    return SJ_SYS(SYS_pwrite64, file, bytes, size, at, 0, 0) == (long)size;
}

static bool write_all(const sj_mono_code *code, int file)
{
    uint64_t at = (uint64_t)code->head.count * sizeof(*code->functions);
    bool is_written = write_bytes(file, code->functions, at, 0);
    for (uint32_t i = 0; i < code->head.count && is_written; i++) {
        const sj_link_code_function *function = &code->functions[i];
        is_written =
            write_bytes(file, (const void *)(uintptr_t)function->address, function->bytes, at);
        at += function->bytes;
    }
    return is_written;
}

/* Sends the code in a memory file. It may be larger than a packet. If it was unmapped, pwrite
 * returns an error, where memcpy would fault. */
static void plan_by_file(sj_mono_code *code)
{
    code->file = (int)SJ_SYS(SYS_memfd_create, "sojourn-code", MFD_CLOEXEC, 0, 0, 0, 0);
    if (code->file < 0) {
        return;
    }
    if (write_all(code, code->file)) {
        sj_mono_plan_code(code);
    }
    (void)sj_sys_close(code->file);
}

static uint64_t total_bytes(const sj_mono_code *code)
{
    uint64_t bytes = (uint64_t)code->head.count * sizeof(*code->functions);
    for (uint32_t i = 0; i < code->head.count; i++) {
        bytes += code->functions[i].bytes;
    }
    return bytes;
}

static void plan_patches(sj_mono_code *code)
{
    enum { PACKET_BYTES = SJ_LINK_MAX_BYTES - sizeof(sj_link_packet) - sizeof(sj_link_code) };
    const uint64_t bytes = total_bytes(code);
    if (bytes > SJ_LINK_CODE_BYTES) {
        return;
    }
    code->head.file_bytes = (uint32_t)bytes;
    if (code->runs || bytes > PACKET_BYTES) {
        plan_by_file(code);
    } else {
        sj_mono_plan_code(code);
    }
}

void sj_mono_report_unhooked_code(const sj_link_code_function *functions, uint32_t count,
                                  uint32_t skip)
{
    uint8_t mark = 0;
    sj_mono_code code = {
        .head = {.count = count, .skip = skip}, .functions = functions, .file = -1, .marks = &mark};
    plan_patches(&code);
}

void sj_mono_hook_code(const sj_link_code_function *functions, void *const *methods, uint32_t count,
                       bool runs, uint8_t *marks)
{
    sj_mono_code code = {
        .head = {.count = count}, .functions = functions, .file = -1, .runs = runs, .marks = marks};
    plan_patches(&code);
    for (uint32_t i = 0; i < count; i++) {
        if (methods != NULL && marks[i] != 0) {
            sj_mono_set_patched(methods[i]);
        }
    }
}

void sj_mono_hook_compiled(void *method, const void *code, uint64_t bytes)
{
    const sj_mono_method *known = sj_mono_find_method(method);
    if (known == NULL || bytes == 0 || bytes > SJ_LINK_CODE_BYTES || !sj_recorder_is_armed() ||
        !sj_recorder_may_call() || !sj_mono_can_hook(method)) {
        return;
    }
    const uint32_t state = atomic_load(&known->state);
    if (state != SJ_MONO_TO_BE_PATCHED && state != SJ_MONO_IS_PATCHED) {
        return;
    }
    const sj_mono_selection selection = sj_mono_selection_of(method);
    const sj_link_code_function function = {.address = (uint64_t)(uintptr_t)code,
                                            .bytes = (uint32_t)bytes,
                                            .function = selection.function};
    uint8_t mark = 0;
    if (selection.function != 0 && !sj_mono_are_values_in_registers(method, &selection)) {
        const sj_link_code_function named = {.address = function.address,
                                             .function = function.function};
        sj_mono_report_unhooked_code(&named, 1, SJ_SKIP_VALUES_ELSEWHERE);
    } else if (selection.function != 0) {
        atomic_fetch_add(&compiled_count, 1);
        sj_mono_place_values(method, &selection, function.address);
        sj_mono_hook_code(&function, &method, 1, false, &mark);
    }
}

bool sj_mono_may_hook_more(void)
{
    enum { COMPILED_MAX = 12000 }; /* Each one needs an element of the agent's table of modules. */
    return atomic_load(&compiled_count) < COMPILED_MAX;
}

bool sj_mono_can_hook(void *method)
{
    return sj_mono_runtime.method_token(method) >> TOKEN_BITS == TOKEN_TABLE &&
           sj_mono_runtime.current_domain() == sj_mono_runtime.root_domain();
}
