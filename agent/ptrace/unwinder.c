#include "agent/ptrace/unwinder.h"

#include "agent/ptrace/proc_status.h"
#include "agent/ptrace/tracee_modules.h"

#include <elfutils/libdwfl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DWARF_SP = SJ_MACHINE_DWARF_SP, PUSHED_BYTES = SJ_MACHINE_CALL_PUSHES * 8 };

/* Limit for the stubs on one stack. A stack has more than one stub only if signals interrupted
 * stubs or the agent. */
enum { STUBS_MAX = 64 };

struct sj_unwinder {
    Dwfl *dwfl;
    const sj_tracee *target;   /* NULL: made by sj_unwinder_new_past */
    const sj_stack_copy *copy; /* the stack that sj_unwinder_walk walks */
    sj_native_frame *frames;
    size_t capacity;
    size_t count;
    bool came_to_end;
    const sj_remote_stubs *stubs; /* NULL: the walk shows the agent's frames */
    bool is_first;                /* the next frame is the first that elfutils reports */
    bool is_behind;               /* the first frame's pc is a return address, minus 1 */
    bool is_in_stub;              /* elfutils stopped at a frame in a stub */
    bool is_stub_behind;          /* the pc of the stub's frame is a return address */
    size_t interrupted;           /* `count` before the latest frame that a signal interrupted */
    sj_registers registers;       /* registers of the first frame, or of the frame in a stub */
};

/* Tells elfutils that a module has no separate debug file. The programs themselves contain the
 * unwind tables. */
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
    const sj_unwinder *unwinder = context;
    (void)dwfl;
    if (*thread_context != NULL) {
        return 0;
    }
    *thread_context = context;
    return unwinder->copy->tid;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *context, void **thread_context)
{
    const sj_unwinder *unwinder = context;
    (void)dwfl;
    *thread_context = context;
    return tid == unwinder->copy->tid;
}

/* Reads from the copy of the stack if it contains all bytes, else from the process. Prefers the
 * copy, because the process may have run since the copy was made. */
static bool read_bytes(void *context, uint64_t address, void *bytes, uint32_t count)
{
    const sj_unwinder *unwinder = context;
    const sj_stack_copy *copy = unwinder->copy;
    if (address >= copy->low && address - copy->low + count <= copy->size) {
        memcpy(bytes, copy->bytes + (address - copy->low), count);
        return true;
    }
    return unwinder->target != NULL &&
           sj_tracee_read(unwinder->target, address, bytes, count) == SJ_OK;
}

static bool read_word(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *word, void *context)
{
    (void)dwfl;
    const sj_unwinder *unwinder = context;
    /* Removes the signature, because a saved return address may be signed. All other words that
     * unwinding needs are addresses of the program, which have none of the signature bits. */
    const bool is_read = read_bytes(context, address, word, sizeof(*word));
    *word = is_read ? *word & ~unwinder->copy->state.signature_bits : 0;
    return is_read;
}

static bool set_registers(Dwfl_Thread *thread, void *context)
{
    const sj_unwinder *unwinder = context;
    const sj_registers *state = &unwinder->registers;
    Dwarf_Word registers[sizeof(state->registers) / sizeof(state->registers[0])];
    for (uint32_t i = 0; i < state->register_count; i++) {
        registers[i] = state->registers[i];
    }
    if (!dwfl_thread_state_registers(thread, 0, state->register_count, registers)) {
        return false;
    }
    dwfl_thread_state_register_pc(thread, state->pc);
    return true;
}

static const Dwfl_Thread_Callbacks thread_callbacks = {.next_thread = next_thread,
                                                       .get_thread = get_thread,
                                                       .memory_read = read_word,
                                                       .set_initial_registers = set_registers};

/* Creates an unwinder for the modules that have been reported to `dwfl`. Ends the reporting. Takes
 * ownership of `dwfl`, also on failure. */
static sj_status make(Dwfl *dwfl, const sj_tracee *target, pid_t pid, sj_unwinder **unwinder)
{
    static const sj_stack_copy nobody;
    sj_unwinder *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        dwfl_end(dwfl);
        return SJ_ENOMEM;
    }
    *made = (sj_unwinder){.dwfl = dwfl, .target = target, .copy = &nobody};
    if (dwfl_report_end(dwfl, NULL, NULL) != 0 ||
        !dwfl_attach_state(dwfl, NULL, pid, &thread_callbacks, made)) {
        sj_unwinder_free(made);
        return SJ_EIO;
    }
    *unwinder = made;
    return SJ_OK;
}

typedef struct module_report {
    Dwfl *dwfl;
    pid_t pid;
} module_report;

/* Names the modules as dwfl_linux_proc_find_elf expects it. */
static void report_module(void *context, const sj_remote_module *module)
{
    const module_report *report = context;
    char vdso[32];
    snprintf(vdso, sizeof(vdso), "[vdso: %d]", (int)report->pid);
    (void)dwfl_report_module(report->dwfl, module->path[0] == '/' ? module->path : vdso,
                             module->low, module->high);
}

/* Does not use dwfl_linux_proc_report, which takes a piece of a library that lies before the
 * library, mapped only to be read, for its beginning. */
sj_status sj_unwinder_new(const sj_tracee *target, sj_unwinder **unwinder)
{
    static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_linux_proc_find_elf,
                                             .find_debuginfo = find_no_debug_file};
    Dwfl *dwfl = dwfl_begin(&callbacks);
    module_report report = {.dwfl = dwfl, .pid = sj_proc_living(target->pid)};
    if (dwfl == NULL) {
        return SJ_ENOMEM;
    }
    dwfl_report_begin(dwfl);
    if (sj_remote_modules_each(target->pid, report_module, &report) != SJ_OK) {
        dwfl_end(dwfl);
        return SJ_EIO;
    }
    return make(dwfl, target, target->pid, unwinder);
}

sj_status sj_unwinder_new_past(const sj_mapped_file *files, size_t count, sj_unwinder **unwinder)
{
    enum { PSEUDO_PID = 1 };
    static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_build_id_find_elf,
                                             .find_debuginfo = find_no_debug_file};
    Dwfl *dwfl = dwfl_begin(&callbacks);
    if (dwfl == NULL) {
        return SJ_ENOMEM;
    }
    dwfl_report_begin(dwfl);
    /* elfutils refuses a module that overlaps a known one. The loop reports the last file first, so
     * that later files hide earlier ones. */
    for (size_t i = count; i-- > 0;) {
        (void)dwfl_report_elf(dwfl, files[i].path, files[i].path, -1, files[i].bias, true);
    }
    return make(dwfl, NULL, PSEUDO_PID, unwinder);
}

void sj_unwinder_free(sj_unwinder *unwinder)
{
    if (unwinder != NULL) {
        if (unwinder->dwfl != NULL) {
            dwfl_end(unwinder->dwfl);
        }
        free(unwinder);
    }
}

sj_status sj_stack_copy_read(const sj_tracee *target, pid_t tid, size_t limit, sj_stack_copy *copy)
{
    *copy = (sj_stack_copy){.tid = tid};
    SJ_TRY(sj_registers_get(tid, &copy->state));
    copy->low = copy->state.sp;
    copy->bytes = malloc(limit);
    if (copy->bytes == NULL) {
        return SJ_ENOMEM;
    }
    const ssize_t got = pread(target->memory, copy->bytes, limit, (off_t)copy->low);
    copy->size = got > 0 ? (size_t)got : 0;
    return SJ_OK;
}

void sj_stack_copy_deinit(sj_stack_copy *copy)
{
    free(copy->bytes);
    copy->bytes = NULL;
}

/* Saves the registers of a frame in a stub. leave_stub computes the program's registers from them.
 * Sets registers that elfutils does not know to 0. The program's unwind tables do not need them.
 * `is_behind`: `pc` is a return address. */
static void keep_registers(sj_unwinder *unwinder, Dwfl_Frame *state, uint64_t pc, bool is_behind)
{
    sj_registers kept = {.pc = pc, .register_count = unwinder->registers.register_count};
    for (uint32_t i = 0; i < kept.register_count; i++) {
        Dwarf_Word value = 0;
        kept.registers[i] = dwfl_frame_reg(state, i, &value) == 0 ? value : 0;
    }
    unwinder->registers = kept;
    unwinder->is_in_stub = true;
    unwinder->is_stub_behind = is_behind;
}

static int add_frame(Dwfl_Frame *state, void *context)
{
    sj_unwinder *unwinder = context;
    Dwarf_Addr pc = 0;
    Dwarf_Word stack = 0;
    bool is_activation = false;
    if (unwinder->count == unwinder->capacity || !dwfl_frame_pc(state, &pc, &is_activation)) {
        return DWARF_CB_ABORT;
    }
    const uint64_t at = pc - (is_activation ? 0 : 1);
    unwinder->interrupted =
        is_activation && !unwinder->is_first ? unwinder->count : unwinder->interrupted;
    if (unwinder->stubs != NULL && sj_remote_stubs_find(unwinder->stubs, at) != NULL) {
        keep_registers(unwinder, state, pc, !is_activation);
        return DWARF_CB_ABORT;
    }
    /* PUSHED_BYTES is not 0 if calls push the return address. The caller's stack pointer then
     * points directly above the return address. */
    if (dwfl_frame_reg(state, DWARF_SP, &stack) == 0 && !unwinder->is_first &&
        unwinder->count != 0) {
        unwinder->frames[unwinder->count - 1].stack = stack - PUSHED_BYTES;
    }
    if (unwinder->stubs == NULL || !sj_remote_is_in(&unwinder->stubs->agent, at)) {
        const bool is_behind = unwinder->is_first && unwinder->is_behind;
        unwinder->frames[unwinder->count++] = (sj_native_frame){
            .pc = pc + (is_behind ? 1 : 0), .is_activation = is_activation && !is_behind};
    }
    unwinder->is_first = false;
    return DWARF_CB_OK;
}

/* Moves from a stub to the program instruction that the stub stands for. Returns false if that
 * instruction is unknown. If the stub made a call, first drops the frames of that call: frames of
 * the agent, and of library functions that the agent called. */
static bool leave_stub(sj_unwinder *unwinder)
{
    unwinder->count = unwinder->is_stub_behind ? unwinder->interrupted : unwinder->count;
    uint64_t *registers = unwinder->registers.registers;
    sj_stub_state state = {.pc = unwinder->registers.pc,
                           .sp = registers[DWARF_SP],
                           .link = registers[SJ_MACHINE_DWARF_LINK],
                           .is_behind = unwinder->is_stub_behind};
    const sj_remote_range *area =
        sj_remote_stubs_find(unwinder->stubs, state.pc - (state.is_behind ? 1 : 0));
    if (area == NULL ||
        !sj_stub_leave(area->low, area->high - area->low, read_bytes, unwinder, &state)) {
        return false;
    }
    /* elfutils treats the first pc as the next instruction to run, not as a return address. So a
     * return address is passed minus 1; add_frame adds the 1 again. */
    unwinder->registers.pc = state.pc - (state.is_behind ? 1 : 0);
    registers[SJ_MACHINE_DWARF_LINK] = state.link;
    registers[DWARF_SP] = state.sp;
    unwinder->is_behind = state.is_behind;
    return true;
}

static bool has_unwind_table(Dwfl *dwfl, uint64_t pc)
{
    Dwarf_Addr bias = 0;
    Dwarf_Frame *frame = NULL;
    Dwfl_Module *module = dwfl_addrmodule(dwfl, pc);
    Dwarf_CFI *tables = module != NULL ? dwfl_module_eh_cfi(module, &bias) : NULL;
    const bool has = tables != NULL && dwarf_cfi_addrframe(tables, pc - bias, &frame) == 0;
    free(frame);
    return has;
}

/* True if the thread is in a function of the C library that makes a new thread or process: in its
 * system call or right after it. There the unwind tables of such a function end, because they would
 * be wrong in the new thread. That thread has 0 as the result, in register 0 of both machines. */
static bool is_in_clone(sj_unwinder *unwinder)
{
    const sj_registers *state = &unwinder->registers;
    uint32_t code = 0;
    return state->registers[0] != 0 &&
           read_bytes(unwinder, state->pc - SJ_MACHINE_SYSTEM_CALL_BYTES, &code,
                      SJ_MACHINE_SYSTEM_CALL_BYTES) &&
           code == SJ_MACHINE_SYSTEM_CALL && !has_unwind_table(unwinder->dwfl, state->pc) &&
           has_unwind_table(unwinder->dwfl, state->pc - SJ_MACHINE_SYSTEM_CALL_BYTES - 1);
}

/* Moves from such a function to its caller. The return address is where the call has put it. */
static void leave_clone(sj_unwinder *unwinder)
{
    sj_registers *state = &unwinder->registers;
    uint64_t caller = state->registers[SJ_MACHINE_DWARF_LINK];
    if (!is_in_clone(unwinder) ||
        (PUSHED_BYTES != 0 && !read_bytes(unwinder, state->sp, &caller, sizeof(caller))) ||
        dwfl_addrmodule(unwinder->dwfl, caller & ~state->signature_bits) == NULL) {
        return;
    }
    unwinder->frames[unwinder->count++] = (sj_native_frame){
        .pc = state->pc, .stack = PUSHED_BYTES != 0 ? state->sp : 0, .is_activation = true};
    state->registers[DWARF_SP] += PUSHED_BYTES;
    state->pc = (caller & ~state->signature_bits) - 1; /* as in leave_stub */
    unwinder->is_behind = true;
}

size_t sj_unwinder_walk(sj_unwinder *unwinder, const sj_stack_copy *copy, sj_native_frame *frames,
                        size_t capacity)
{
    unwinder->copy = copy;
    unwinder->frames = frames;
    unwinder->capacity = capacity;
    unwinder->count = 0;
    unwinder->interrupted = 0;
    unwinder->registers = copy->state;
    unwinder->is_behind = false;
    if (capacity != 0) {
        leave_clone(unwinder);
    }
    for (uint32_t stubs = 0; stubs <= STUBS_MAX; stubs++) {
        unwinder->is_first = true;
        unwinder->is_in_stub = false;
        unwinder->came_to_end =
            dwfl_getthread_frames(unwinder->dwfl, copy->tid, add_frame, unwinder) == DWARF_CB_OK;
        if (!unwinder->is_in_stub || !leave_stub(unwinder)) {
            break;
        }
    }
    return unwinder->count;
}

void sj_unwinder_hide_agent(sj_unwinder *unwinder, const sj_remote_stubs *stubs)
{
    unwinder->stubs = stubs;
}

bool sj_unwinder_came_to_end(const sj_unwinder *unwinder)
{
    return unwinder->came_to_end;
}

/* Returns the name of the function at `pc`, or NULL. Linkers fold functions with equal code, so one
 * address may have several names. Of the names with the symbol type that elfutils finds, prefers a
 * global one to a local one, then the first in byte order.
 *
 * sj_symbols_sort has the same preferences among symbols of one kind and source. So a stack and a
 * list of calls usually show the same name. */
static const char *name_of(Dwfl_Module *module, uint64_t pc)
{
    GElf_Off offset = 0;
    GElf_Sym chosen = {0};
    const char *name = dwfl_module_addrinfo(module, pc, &offset, &chosen, NULL, NULL, NULL);
    const int count = name != NULL ? dwfl_module_getsymtab(module) : 0;
    bool is_local = GELF_ST_BIND(chosen.st_info) == STB_LOCAL;
    for (int i = 1; i < count; i++) {
        GElf_Sym symbol;
        GElf_Addr address = 0;
        const char *other = dwfl_module_getsym_info(module, i, &symbol, &address, NULL, NULL, NULL);
        if (other == NULL || other[0] == '\0' || address != pc - offset ||
            GELF_ST_TYPE(symbol.st_info) != GELF_ST_TYPE(chosen.st_info)) {
            continue;
        }
        const bool other_is_local = GELF_ST_BIND(symbol.st_info) == STB_LOCAL;
        if (other_is_local != is_local ? is_local : strcmp(other, name) < 0) {
            name = other;
            is_local = other_is_local;
        }
    }
    return name;
}

const char *sj_unwinder_name(sj_unwinder *unwinder, uint64_t pc)
{
    Dwfl_Module *module = dwfl_addrmodule(unwinder->dwfl, pc);
    return module != NULL ? name_of(module, pc) : NULL;
}

void sj_unwinder_locate(sj_unwinder *unwinder, uint64_t pc, sj_code_place *place)
{
    Dwarf_Addr bias = 0;
    Dwfl_Module *module = dwfl_addrmodule(unwinder->dwfl, pc);
    *place = (sj_code_place){.offset = pc};
    if (module == NULL) {
        return;
    }
    place->function = name_of(module, pc);
    const char *name = dwfl_module_info(module, NULL, NULL, NULL, NULL, NULL, &place->path, NULL);
    place->path = place->path != NULL ? place->path : name;
    if (dwfl_module_getelf(module, &bias) != NULL) {
        place->offset = pc - bias;
    }
}
