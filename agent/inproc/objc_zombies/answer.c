#include "agent/inproc/objc_zombies/internal.h"

#include <string.h>

enum { NO_ADDRESS = 4096 };

/* The program may have written nonsense where the selector should be. */
static bool may_be_read(const void *pointer)
{
    const uint64_t address = (uint64_t)(uintptr_t)pointer;
    return address >= NO_ADDRESS && (address & (sizeof(void *) - 1)) == 0;
}

static const char *type_of_result(const void *selector)
{
    const char *types = sj_objc_gcc.selector_types(selector);
    return types != NULL ? sj_objc_gcc.skip_qualifiers(types) : "";
}

static uint64_t floats_of(const char *type)
{
    if (strncmp(type, "jD", 2) == 0) {
        return 2;
    }
    return *type == 'D' ? 1 : 0;
}

static uint64_t value_of(const void *receiver, const char *name)
{
    static const char *const themselves[] = {"retain", "autorelease"};
    for (size_t i = 0; i < sizeof(themselves) / sizeof(themselves[0]); i++) {
        if (strcmp(name, themselves[i]) == 0) {
            return (uint64_t)(uintptr_t)receiver;
        }
    }
    /* What asks for code is going to call it. */
    return strcmp(name, "methodForSelector:") == 0 ||
                   strcmp(name, "instanceMethodForSelector:") == 0
               ? sj_door(SJ_DOOR_ANSWER)
               : 0;
}

static void stop_or_go_on(sj_zombie_on_use next, sj_kept *kept)
{
    if (next == SJ_ZOMBIE_STOP) {
        sj_report_stop();
    } else if (next == SJ_ZOMBIE_FREE && kept != NULL) {
        sj_queue_let_go_one(kept);
    }
}

/* Results in memory: their address comes first, and is returned. */
static sj_answer answer_in_memory(void *memory, void *receiver, const void *selector, uint64_t site)
{
    const char *type = type_of_result(selector);
    const int bytes = *type != '\0' ? sj_objc_gcc.size_of_type(type) : 0;
    sj_kept *kept = sj_queue_find(receiver);
    const sj_zombie_on_use next = sj_report_message(kept, selector, site);
    if (bytes > 0) {
        memset(memory, 0, (size_t)bytes);
    }
    stop_or_go_on(next, kept);
    return (sj_answer){.value = (uint64_t)(uintptr_t)memory};
}

sj_answer sj_objc_answer(void *first, void *second, void *third, uint64_t site)
{
    if (!may_be_read(second)) {
        return (sj_answer){0};
    }
    if (sj_objc_is_zombie(second)) {
        return answer_in_memory(first, second, third, site);
    }
    if (!may_be_read(first) || (!sj_objc_is_zombie(first) && first != &sj_doors_now->zombie)) {
        return (sj_answer){0}; /* it has been let go meanwhile */
    }
    const char *name = sj_objc_gcc.selector_name(second);
    const sj_answer answer = {.value = value_of(first, name),
                              .floats = floats_of(type_of_result(second))};
    if (first != &sj_doors_now->zombie) {
        sj_kept *kept = sj_queue_find(first);
        stop_or_go_on(sj_report_message(kept, second, site), kept);
    }
    return answer;
}
