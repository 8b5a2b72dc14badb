/* Design notes
 *
 * A call by sojourn.h reads its reference twice, to compare it with 0 and to call it, so a
 * reference that was once led somewhere can never be 0 again. It is led to a gate instead, code in
 * a page of its own that jumps where a cell in the page behind it says: to the agent while a
 * process is recorded, to a return when it was left. The two pages stay in the program for good,
 * and the next agent finds them by the references, so there is one pair however often it comes and
 * goes. */
#include "agent/lifecycle/api_gates.h"

#include "agent/hooks/arch.h"
#include "agent/hooks/dispatch.h"
#include "agent/hooks/dynamic_view.h"
#include "agent/include/sojourn.h"
#include "agent/recorder/sys.h"

#include <string.h>
#include <sys/mman.h>

#define PAGE SJ_ARCH_PAGE_MULTIPLE
#define GATES_MAGIC UINT64_C(0x31534554414753) /* "SGATES1" */

typedef struct gate_function {
    const char *name;
    uint64_t address;
} gate_function;

enum { GATES = 3 };

/* The second page. */
typedef struct gate_cells {
    uint64_t magic;
    uint64_t closed; /* address of a return */
    uint64_t targets[GATES];
} gate_cells;

static gate_cells *cells;

static uint64_t gate_address(uint32_t gate)
{
    return (uint64_t)(uintptr_t)cells - PAGE + (uint64_t)gate * SJ_DISPATCH_STUB_BYTES;
}

/* A gate enters the "record" whose first word is its cell. */
static void write_gate(uint8_t *code, const gate_cells *of, uint32_t gate)
{
    sj_arch_write_stub(code, (const sj_dispatch_record *)(const void *)&of->targets[gate]);
}

/* adopt takes the pages over that an earlier agent made, when `held` is one of their gates. */
static bool adopt(uint64_t held, uint32_t gate)
{
    uint8_t expected[SJ_DISPATCH_STUB_BYTES];
    const uint64_t page = held & ~(PAGE - 1);
    gate_cells *found = (gate_cells *)(page + PAGE);
    if (held - page != (uint64_t)gate * SJ_DISPATCH_STUB_BYTES) {
        return false;
    }
    write_gate(expected, found, gate);
    if (memcmp((const void *)held, expected, sizeof(expected)) != 0 ||
        found->magic != GATES_MAGIC) {
        return false;
    }
    cells = found;
    return true;
}

static bool make(void)
{
    uint8_t *pages =
        sj_sys_map(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (sj_sys_failed(pages)) {
        return false;
    }
    gate_cells *made = (gate_cells *)(void *)(pages + PAGE);
    uint8_t *closed = pages + (size_t)GATES * SJ_DISPATCH_STUB_BYTES;
    const uint32_t code = SJ_ARCH_RETURN_CODE;
    for (uint32_t i = 0; i < GATES; i++) {
        write_gate(pages + (size_t)i * SJ_DISPATCH_STUB_BYTES, made, i);
        made->targets[i] = (uint64_t)(uintptr_t)closed;
    }
    memcpy(closed, &code, sizeof(code));
    *made = (gate_cells){.magic = GATES_MAGIC,
                         .closed = (uint64_t)(uintptr_t)closed,
                         .targets = {(uint64_t)(uintptr_t)closed, (uint64_t)(uintptr_t)closed,
                                     (uint64_t)(uintptr_t)closed}};
    sj_arch_sync_code((uint64_t)(uintptr_t)pages, PAGE);
    if (sj_sys_protect(pages, PAGE, PROT_READ | PROT_EXEC) != 0) {
        (void)sj_sys_unmap(pages, 2 * PAGE);
        return false;
    }
    cells = made;
    return true;
}

static const gate_function *functions(void)
{
    static gate_function list[GATES];
    list[0] =
        (gate_function){"sojourn_agent_mark_begin", (uint64_t)(uintptr_t)sojourn_agent_mark_begin};
    list[1] =
        (gate_function){"sojourn_agent_mark_end", (uint64_t)(uintptr_t)sojourn_agent_mark_end};
    list[2] = (gate_function){"sojourn_agent_request", (uint64_t)(uintptr_t)sojourn_agent_request};
    return list;
}

/* is_reference: the relocation leads a word to a function of that name that the module lacks. */
static bool is_reference(const sj_dynamic_view *view, const ElfW(Rela) * relocation,
                         const char *name)
{
    const uint32_t type = (uint32_t)ELF64_R_TYPE(relocation->r_info);
    const ElfW(Sym) *symbol = &view->symbols[ELF64_R_SYM(relocation->r_info)];
    return (type == SJ_SLOT_JUMP || type == SJ_SLOT_DATA ||
            (type == SJ_SLOT_WORD && relocation->r_addend == 0)) &&
           symbol->st_shndx == SHN_UNDEF && ELF64_ST_BIND(symbol->st_info) == STB_WEAK &&
           strcmp(view->strings + symbol->st_name, name) == 0;
}

typedef enum gate_step { GATE_FIND, GATE_LEAD } gate_step;

/* visit looks at one word of a module. Those that are called (tables[0]) are led first: as soon as
 * the others, which are compared, are not 0, the program calls. */
static void visit(const sj_dynamic_view *view, const ElfW(Rela) * relocation, uint32_t gate,
                  gate_step step, bool *wanted)
{
    const uint64_t slot = view->bias + relocation->r_offset;
    const uint64_t held = *(const volatile uint64_t *)slot;
    const bool is_called = ELF64_R_TYPE(relocation->r_info) == SJ_SLOT_JUMP;
    if (step == GATE_FIND) {
        *wanted = *wanted || (!is_called && held == 0);
        if (held != 0 && !is_called && cells == NULL) {
            (void)adopt(held, gate);
        }
    } else if (held == 0 || is_called) {
        (void)sj_slot_write(view, slot, gate_address(gate));
    }
}

static void walk(const sj_dynamic_view *view, uint32_t gate, gate_step step, bool *wanted)
{
    const char *name = functions()[gate].name;
    for (uint32_t t = 0; t < 2; t++) {
        for (size_t i = 0; i < view->table_bytes[t] / sizeof(ElfW(Rela)); i++) {
            if (is_reference(view, &view->tables[t][i], name)) {
                visit(view, &view->tables[t][i], gate, step, wanted);
            }
        }
    }
}

static int follow_module(struct dl_phdr_info *info, size_t size, void *context)
{
    sj_dynamic_view view;
    const gate_step *step = context;
    (void)size;
    if (!sj_dynamic_view_read(info, &view)) {
        return 0;
    }
    for (uint32_t gate = 0; gate < GATES; gate++) {
        bool wanted = false;
        walk(&view, gate, GATE_FIND, &wanted);
        if (*step == GATE_LEAD && wanted && (cells != NULL || make())) {
            walk(&view, gate, GATE_LEAD, &wanted);
        }
    }
    return 0;
}

uint64_t sj_api_gates_follow(void)
{
    for (gate_step step = GATE_FIND; step <= GATE_LEAD; step++) {
        (void)dl_iterate_phdr(follow_module, &step);
    }
    for (uint32_t i = 0; cells != NULL && i < GATES; i++) {
        __atomic_store_n(&cells->targets[i], functions()[i].address, __ATOMIC_RELEASE);
    }
    return cells != NULL ? 2 * PAGE : 0;
}

void sj_api_gates_close(void)
{
    for (uint32_t i = 0; cells != NULL && i < GATES; i++) {
        __atomic_store_n(&cells->targets[i], cells->closed, __ATOMIC_RELEASE);
    }
}
