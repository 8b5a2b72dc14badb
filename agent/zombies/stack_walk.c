#include "agent/zombies/stack_walk.h"

#include <stdlib.h>
#include <string.h>

enum { STACK_POINTER = 7, PROGRAM_COUNTER = 16, FRAMES_MAX = 128 };

sj_status sj_stack_walk_prepare(const sj_zombie_module *modules, size_t count,
                                sj_unwinder **unwinder)
{
    sj_mapped_file *files = calloc(count + 1, sizeof(*files));
    if (files == NULL) {
        return SJ_ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        _Static_assert(sizeof(files->path) > SJ_ZOMBIE_PATH_BYTES, "and its end");
        files[i].bias = modules[i].bias;
        memcpy(files[i].path, modules[i].path, SJ_ZOMBIE_PATH_BYTES);
    }
    const sj_status status = sj_unwinder_new_past(files, count, unwinder);
    free(files);
    return status;
}

size_t sj_stack_walk(sj_unwinder *unwinder, const sj_zombie_trace *trace, const uint8_t *stack,
                     bool is_fault, sj_code_place *frames, size_t capacity)
{
    sj_native_frame native[FRAMES_MAX];
    sj_stack_copy copy = {.tid = 1,
                          .low = trace->registers[STACK_POINTER],
                          .size = trace->stack_bytes,
                          .bytes = (uint8_t *)(uintptr_t)stack};
    copy.state.register_count = SJ_ZOMBIE_REGISTERS;
    memcpy(copy.state.registers, trace->registers, sizeof(trace->registers));
    copy.state.pc = trace->registers[PROGRAM_COUNTER];
    const size_t most = capacity < FRAMES_MAX ? capacity : FRAMES_MAX;
    const size_t found = sj_unwinder_walk(unwinder, &copy, native, most);
    size_t count = 0;
    while (count < found && native[count].pc != 0) {
        const bool is_exact = count == 0 ? is_fault : native[count].is_activation;
        const uint64_t after_call = is_exact ? 0 : 1;
        sj_unwinder_locate(unwinder, native[count].pc - after_call, &frames[count]);
        frames[count++].offset += after_call;
    }
    return count;
}
