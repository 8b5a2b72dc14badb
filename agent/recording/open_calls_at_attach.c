#include "agent/recording/open_calls_at_attach.h"

#include <stdlib.h>

/* Keeps the calls of hooked functions and returns their number. Skips a thread at the first
 * instruction of a function, because its probe will record that entry. */
static size_t name_calls(const sj_function_index *index, const sj_open_call *calls, size_t count,
                         sj_open_call_at_attach *named)
{
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        const uint64_t address = calls[i].is_next ? calls[i].pc : calls[i].pc - 1;
        const sj_function_range *range = sj_function_index_find(index, address);
        if (range != NULL && !(calls[i].is_next && address == range->low)) {
            named[used++] = (sj_open_call_at_attach){
                .tid = calls[i].tid, .function = range->function, .stack = calls[i].stack};
        }
    }
    return used;
}

uint32_t sj_open_calls_at_attach(sj_attach *attach, pid_t pid, uint64_t number,
                                 sj_registry *registry, sj_drain *drain, uint64_t ticks)
{
    sj_function_index index = {0};
    sj_open_call *calls = NULL;
    sj_open_call_at_attach *named = NULL;
    size_t count = 0;
    size_t used = 0;
    if (sj_attach_open_calls(attach, &calls, &count) == SJ_OK &&
        sj_registry_index_functions(registry, number, &index) == SJ_OK) {
        named = calloc(count + 1, sizeof(*named));
        used = named != NULL ? name_calls(&index, calls, count, named) : 0;
    }
    const sj_status status = sj_drain_preopen(drain, pid, named, used, ticks);
    sj_function_index_deinit(&index);
    free(named);
    free(calls);
    return status == SJ_OK ? (uint32_t)used : 0;
}
