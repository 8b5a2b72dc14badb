#include "agent/inproc/objc_zombies/internal.h"

#include <string.h>

enum { NO_ADDRESS = 4096 };

/* True if a pointer may be valid: it is aligned and not in the first page. An argument that should
 * be an object or a selector may be any number. */
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

/* Returns the number of x87 registers that hold a result of this type. */
static uint64_t x87_zeros_of(const char *type)
{
    if (strncmp(type, "jD", 2) == 0) {
        return 2;
    }
    return *type == 'D' ? 1 : 0;
}

/* Returns the result of a message to a freed object: the receiver, the trampoline, or 0. */
static uint64_t value_of(const void *receiver, const char *name)
{
    static const char *const themselves[] = {"retain", "autorelease"};
    for (size_t i = 0; i < sizeof(themselves) / sizeof(themselves[0]); i++) {
        if (strcmp(name, themselves[i]) == 0) {
            return (uint64_t)(uintptr_t)receiver;
        }
    }
    /* The program will call the result, so it gets the trampoline. */
    return strcmp(name, "methodForSelector:") == 0 ||
                   strcmp(name, "instanceMethodForSelector:") == 0
               ? sj_objc_trampoline_address(SJ_TRAMPOLINE_FREED_MESSAGE)
               : 0;
}

static void apply_policy(sj_zombie_on_use next, sj_kept *kept)
{
    if (next == SJ_ZOMBIE_STOP) {
        sj_report_stop();
    } else if (next == SJ_ZOMBIE_FREE && kept != NULL) {
        sj_queue_free_used(kept);
    }
}

/* Handles a message whose result is in memory: clears the result and returns its address, which is
 * the first argument. */
static sj_message_result handle_with_memory_result(void *memory, void *receiver,
                                                   const void *selector, uint64_t site)
{
    const char *type = type_of_result(selector);
    const int bytes = *type != '\0' ? sj_objc_gcc.size_of_type(type) : 0;
    sj_kept *kept = sj_queue_find(receiver);
    const sj_zombie_on_use next = sj_report_message(kept, selector, site);
    if (bytes > 0) {
        memset(memory, 0, (size_t)bytes);
    }
    apply_policy(next, kept);
    return (sj_message_result){.value = (uint64_t)(uintptr_t)memory};
}

sj_message_result sj_objc_handle_freed_message(void *first, void *second, void *third,
                                               uint64_t site)
{
    if (!may_be_read(second)) {
        return (sj_message_result){0};
    }
    if (sj_objc_is_zombie(second)) {
        return handle_with_memory_result(first, second, third, site);
    }
    if (!may_be_read(first) ||
        (!sj_objc_is_zombie(first) && first != &sj_objc_trampolines_now->zombie)) {
        /* Another thread may have released the kept object meanwhile. */
        return (sj_message_result){0};
    }
    const char *name = sj_objc_gcc.selector_name(second);
    const sj_message_result result = {.value = value_of(first, name),
                                      .x87_zeros = x87_zeros_of(type_of_result(second))};
    if (first != &sj_objc_trampolines_now->zombie) {
        sj_kept *kept = sj_queue_find(first);
        apply_policy(sj_report_message(kept, second, site), kept);
    }
    return result;
}
