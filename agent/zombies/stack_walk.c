#include "agent/zombies/stack_walk.h"

#include <elfutils/libdwfl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STACK_POINTER = 7, PSEUDO_PID = 1 };

struct sj_stack_walker {
    Dwfl *dwfl;
    const sj_zombie_trace *trace; /* of the walk at hand */
    const uint8_t *stack;
    bool is_fault;
    sj_walked_frame *frames;
    size_t capacity;
    size_t count;
};

/* Debug files are not looked for: unwind tables are part of the programs. */
static int find_no_debug_file(Dwfl_Module *module, void **user_data, const char *name,
                              Dwarf_Addr base, const char *file_name, const char *link,
                              GElf_Word crc, char **found)
{
    (void)module;
    (void)user_data;
    (void)name;
    (void)base;
    (void)file_name;
    (void)link;
    (void)crc;
    (void)found;
    return -1;
}

static pid_t next_thread(Dwfl *dwfl, void *context, void **thread_context)
{
    (void)dwfl;
    if (*thread_context != NULL) {
        return 0;
    }
    *thread_context = context;
    return PSEUDO_PID;
}

static bool read_word(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *word, void *context)
{
    const sj_stack_walker *walker = context;
    const uint64_t low = walker->trace->registers[STACK_POINTER];
    const uint64_t bytes = walker->trace->stack_bytes;
    (void)dwfl;
    if (address < low || address - low > bytes || bytes - (address - low) < sizeof(*word)) {
        return false;
    }
    memcpy(word, walker->stack + (address - low), sizeof(*word));
    return true;
}

static bool set_registers(Dwfl_Thread *thread, void *context)
{
    const sj_stack_walker *walker = context;
    Dwarf_Word registers[SJ_ZOMBIE_REGISTERS];
    for (uint32_t i = 0; i < SJ_ZOMBIE_REGISTERS; i++) {
        registers[i] = walker->trace->registers[i];
    }
    return dwfl_thread_state_registers(thread, 0, SJ_ZOMBIE_REGISTERS, registers);
}

static const Dwfl_Callbacks module_callbacks = {.find_elf = dwfl_build_id_find_elf,
                                                .find_debuginfo = find_no_debug_file};
static const Dwfl_Thread_Callbacks thread_callbacks = {
    .next_thread = next_thread, .memory_read = read_word, .set_initial_registers = set_registers};

/* Later modules hide earlier ones at the same place: elfutils refuses overlaps, so they go first.
 */
static void report_modules(Dwfl *dwfl, const sj_zombie_module *modules, size_t count)
{
    for (size_t i = count; i-- > 0;) {
        char path[SJ_ZOMBIE_PATH_BYTES + 1] = "";
        memcpy(path, modules[i].path, SJ_ZOMBIE_PATH_BYTES);
        (void)dwfl_report_elf(dwfl, path, path, -1, modules[i].bias, true);
    }
}

/* elfutils wants a module of the process's machine: the first that it can open. */
static bool attach(sj_stack_walker *walker)
{
    return dwfl_attach_state(walker->dwfl, NULL, PSEUDO_PID, &thread_callbacks, walker);
}

sj_status sj_stack_walker_new(const sj_zombie_module *modules, size_t count,
                              sj_stack_walker **walker)
{
    sj_stack_walker *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return SJ_ENOMEM;
    }
    made->dwfl = dwfl_begin(&module_callbacks);
    if (made->dwfl == NULL) {
        sj_stack_walker_free(made);
        return SJ_ENOMEM;
    }
    dwfl_report_begin(made->dwfl);
    report_modules(made->dwfl, modules, count);
    if (dwfl_report_end(made->dwfl, NULL, NULL) != 0 || !attach(made)) {
        sj_stack_walker_free(made);
        return SJ_EIO;
    }
    *walker = made;
    return SJ_OK;
}

void sj_stack_walker_free(sj_stack_walker *walker)
{
    if (walker != NULL) {
        if (walker->dwfl != NULL) {
            dwfl_end(walker->dwfl);
        }
        free(walker);
    }
}

static void locate(const sj_stack_walker *walker, uint64_t pc, uint64_t behind_call,
                   sj_walked_frame *frame)
{
    Dwarf_Addr bias = 0;
    Dwfl_Module *module = dwfl_addrmodule(walker->dwfl, pc - behind_call);
    *frame = (sj_walked_frame){.offset = pc};
    if (module == NULL) {
        return;
    }
    frame->function = dwfl_module_addrname(module, pc - behind_call);
    frame->path = dwfl_module_info(module, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
    if (dwfl_module_getelf(module, &bias) != NULL) {
        frame->offset = pc - bias;
    }
}

static int take_frame(Dwfl_Frame *state, void *context)
{
    sj_stack_walker *walker = context;
    Dwarf_Addr pc = 0;
    bool is_activation = false;
    if (walker->count == walker->capacity || !dwfl_frame_pc(state, &pc, &is_activation) ||
        pc == 0) {
        return DWARF_CB_ABORT;
    }
    const bool is_exact = walker->count == 0 ? walker->is_fault : is_activation;
    locate(walker, pc, is_exact ? 0 : 1, &walker->frames[walker->count++]);
    return DWARF_CB_OK;
}

size_t sj_stack_walk(sj_stack_walker *walker, const sj_zombie_trace *trace, const uint8_t *stack,
                     bool is_fault, sj_walked_frame *frames, size_t capacity)
{
    walker->trace = trace;
    walker->stack = stack;
    walker->is_fault = is_fault;
    walker->frames = frames;
    walker->capacity = capacity;
    walker->count = 0;
    (void)dwfl_getthread_frames(walker->dwfl, PSEUDO_PID, take_frame, walker);
    return walker->count;
}
