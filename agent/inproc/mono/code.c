/* Has code hooked in place that the runtime has compiled: the companion plans it from its bytes. */
#include "agent/inproc/mono/internal.h"

#include "agent/abi/plan.h"
#include "agent/inproc/recorder/recorder.h"
#include "agent/inproc/recorder/sys.h"

#include <linux/memfd.h>

enum { TOKEN_BITS = 24, TOKEN_TABLE = 0x06 };

static _Atomic uint32_t compiled_count; /* methods that were hooked when they were compiled */

/* False: not all of it; code may be gone. */
static bool put(int file, const void *bytes, uint64_t size, uint64_t at)
{
    return SJ_SYS(SYS_pwrite64, file, bytes, size, at, 0, 0) == (long)size;
}

static bool put_all(int file, const sj_link_code_function *functions, uint32_t count,
                    uint64_t *size)
{
    uint64_t at = (uint64_t)count * sizeof(functions[0]);
    bool is_put = put(file, functions, at, 0);
    for (uint32_t i = 0; i < count && is_put; i++) {
        is_put = put(file, (const void *)(uintptr_t)functions[i].address, functions[i].bytes, at);
        at += functions[i].bytes;
    }
    *size = at;
    return is_put && at <= SJ_LINK_CODE_BYTES;
}

void sj_mono_refuse_code(const sj_link_code_function *functions, uint32_t count, uint32_t skip)
{
    const uint32_t bytes = count * (uint32_t)sizeof(*functions);
    const sj_link_code code = {.count = count, .file_bytes = bytes, .skip = skip};
    const long file = SJ_SYS(SYS_memfd_create, "sojourn-code", MFD_CLOEXEC, 0, 0, 0, 0);
    uint8_t mark = 0;
    if (file >= 0) {
        if (put((int)file, functions, bytes, 0)) {
            sj_mono_plan_code((int)file, &code, functions[0].address, functions[0].address, false,
                              &mark);
        }
        (void)sj_sys_close((int)file);
    }
}

void sj_mono_hook_code(const sj_link_code_function *functions, void *const *methods, uint32_t count,
                       bool runs, uint8_t *marks)
{
    const long file = SJ_SYS(SYS_memfd_create, "sojourn-code", MFD_CLOEXEC, 0, 0, 0, 0);
    uint64_t size = 0;
    if (file < 0) {
        return;
    }
    if (put_all((int)file, functions, count, &size)) {
        const sj_link_code_function *last = &functions[count - 1];
        const sj_link_code code = {.count = count, .file_bytes = (uint32_t)size};
        sj_mono_plan_code((int)file, &code, functions[0].address, last->address + last->bytes, runs,
                          marks);
    }
    (void)sj_sys_close((int)file);
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
    const sj_mono_wish wish = sj_mono_wish_of(method);
    const sj_link_code_function function = {
        .address = (uint64_t)(uintptr_t)code, .bytes = (uint32_t)bytes, .function = wish.function};
    uint8_t mark = 0;
    if (wish.function != 0 && !sj_mono_can_place(method, &wish)) {
        const sj_link_code_function named = {.address = function.address,
                                             .function = function.function};
        sj_mono_refuse_code(&named, 1, SJ_SKIP_VALUES_ELSEWHERE);
    } else if (wish.function != 0) {
        atomic_fetch_add(&compiled_count, 1);
        sj_mono_place_values(method, &wish, function.address);
        sj_mono_hook_code(&function, &method, 1, false, &mark);
    }
}

bool sj_mono_has_room_in_place(void)
{
    enum { COMPILED_MAX = 3000 }; /* of the modules that the agent has room for */
    return atomic_load(&compiled_count) < COMPILED_MAX;
}

bool sj_mono_can_hook(void *method)
{
    return sj_mono_runtime.method_token(method) >> TOKEN_BITS == TOKEN_TABLE &&
           sj_mono_runtime.current_domain() == sj_mono_runtime.root_domain();
}
