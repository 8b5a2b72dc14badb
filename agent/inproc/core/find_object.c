/* Design notes
 *
 * Unwinders ask the loader for a module's tables. Since GCC 12 and glibc 2.35, libgcc's unwinder
 * calls _dl_find_object, without a lock. Older versions, LLVM's unwinder, libunwind, and unwinders
 * in programs of musl call dl_iterate_phdr. The agent replaces both functions and handles stub
 * areas.
 *
 * A preloaded agent's definitions come first, also for copies of libgcc that are loaded later or
 * linked into programs. In an attached process the slots of all modules are changed. Registration
 * (__register_frame) would make libgcc take a lock at each exception, and a signal handler could
 * wait for that lock for ever.
 *
 * A program that lists its modules must not see stub areas. Only an unwinder has the address of a
 * stub in the structure that it passes to its callback. */
#include "agent/inproc/core/find_object.h"

#include "agent/abi/agent_state.h"
#include "agent/inproc/hooks/libc_calls.h"
#include "agent/inproc/hooks/stub_areas.h"
#include "agent/inproc/hooks/unwind_describe.h"

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

typedef int module_callback(struct dl_phdr_info *info, size_t size, void *data);
typedef int iterate_modules(module_callback *callback, void *data);

static iterate_modules *real_iterate;
void *sj_find_object_real;

/* An unwinder's question about an address in a stub area. */
typedef struct stub_question {
    module_callback *callback;
    void *data;
    ElfW(Phdr) segments[3];
    struct dl_phdr_info area;
    bool is_answered;
} stub_question;

/* Calls the callback for the stub area first, then for the module. It holds the loader's lock, as
 * callbacks expect. For the area it passes only members that all loaders have. So data that a
 * callback keeps about the loader's list does not change. */
static int report_first(struct dl_phdr_info *info, size_t size, void *context)
{
    stub_question *question = context;
    const size_t known_bytes = offsetof(struct dl_phdr_info, dlpi_phnum) + sizeof(info->dlpi_phnum);
    int result = 0;
    if (!question->is_answered) {
        question->is_answered = true;
        result = question->callback(&question->area, known_bytes, question->data);
    }
    return result != 0 ? result : question->callback(info, size, question->data);
}

/* Returns the table for a stub whose address is among the first words of `data`, a structure in a
 * caller's frame. libgcc and libunwind have the address in the first word. LLVM has it in the third
 * word, and looks up the byte before each return address. Returns NULL if there is none. */
static __attribute__((noinline)) const uint8_t *asked_table(const void *data, uint64_t *pc)
{
    enum { WORDS = 3, CALLER_BYTES = 4096 };
    const uint64_t here = (uint64_t)(uintptr_t)__builtin_frame_address(0);
    const uint64_t at = (uint64_t)(uintptr_t)data;
    const uint8_t *table = NULL;
    uint64_t words[WORDS] = {0};
    if (at > here && at - here < CALLER_BYTES && at % sizeof(words[0]) == 0) {
        memcpy(words, data, sizeof(words));
    }
    for (int i = 0; i < WORDS && table == NULL; i++) {
        *pc = words[i];
        table = sj_unwind_describe(*pc, i == WORDS - 1);
    }
    return table;
}

/* Reports a module that contains the place and its table. libunwind reads up to the end of a
 * module. */
static __attribute__((noinline)) int report_table(const uint8_t *table, uint64_t pc,
                                                  module_callback *callback, void *data)
{
    enum { CODE_BYTES = 2 }; /* the place, and the one that an unwinder came from */
    const ElfW(Phdr) code = {.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_memsz = CODE_BYTES};
    ElfW(Phdr) tables = {.p_type = PT_LOAD,
                         .p_flags = PF_R,
                         .p_vaddr = (uint64_t)(uintptr_t)table - pc,
                         .p_filesz = SJ_UNWIND_DESCRIPTION_BYTES,
                         .p_memsz = SJ_UNWIND_DESCRIPTION_BYTES};
    stub_question question = {.callback = callback, .data = data, .segments = {code, tables}};
    tables.p_type = PT_GNU_EH_FRAME;
    question.segments[2] = tables;
    question.area = (struct dl_phdr_info){
        .dlpi_addr = pc, .dlpi_name = "", .dlpi_phdr = question.segments, .dlpi_phnum = 3};
    return real_iterate(report_first, &question);
}

/* Calls that do not come from an unwinder end with a jump to the loader. During the call, the agent
 * has no frame on the stack, so it may be unloaded. */
__attribute__((visibility("default"))) int dl_iterate_phdr(module_callback *callback, void *data)
{
    uint64_t pc = 0;
    if (real_iterate == NULL) {
        void *const found = dlsym(RTLD_NEXT, "dl_iterate_phdr");
        real_iterate = (iterate_modules *)(uintptr_t)found;
    }
    const uint8_t *table = asked_table(data, &pc);
    return table != NULL ? report_table(table, pc, callback, data) : real_iterate(callback, data);
}

#if defined(DLFO_STRUCT_HAS_EH_DBASE)

/* Returns the unwind table of the stub area at `low`. If the area has none, returns the table for
 * `pc`, or 0. */
static uint64_t find_table(uint64_t low, uint64_t pc)
{
    const sj_stub_area *area = (const void *)(uintptr_t)(low + SJ_STUB_AREA_OFFSET);
    return area->magic == SJ_STUB_AREA_MAGIC && area->unwind != 0
               ? low + area->unwind
               : (uint64_t)(uintptr_t)sj_unwind_describe(pc, false);
}

__attribute__((visibility("default"))) int _dl_find_object(void *address,
                                                           struct dl_find_object *result)
{
    int (*real)(void *address, struct dl_find_object *result);
    uint64_t bytes;
    const uint64_t low = sj_stub_areas_find((uint64_t)(uintptr_t)address, &bytes);
    const uint64_t table = low != 0 ? find_table(low, (uint64_t)(uintptr_t)address) : 0;
    if (table == 0) {
        memcpy(&real, &sj_find_object_real, sizeof(real));
        return real != NULL ? real(address, result) : -1;
    }
    *result =
        (struct dl_find_object){.dlfo_map_start = (void *)(uintptr_t)low,
                                .dlfo_map_end = (void *)(uintptr_t)(low + bytes),
                                .dlfo_link_map = (void *)(uintptr_t)sojourn_agent_state.handle,
                                .dlfo_eh_frame = (void *)(uintptr_t)table};
    return 0;
}

#endif
