/* Design notes
 *
 * A call by sojourn.h reads its reference twice, to compare it with 0 and to call it, so a
 * reference that was once set can never be 0 again. It is set to a trampoline: code in a page of
 * its own that jumps to the address in a cell of the page behind it, which is the agent's while the
 * process is recorded and a return after that. The two pages stay in the program for good. The next
 * agent finds them by the references, so there is one pair however often a process is attached to.
 */
#include "agent/inproc/core/api_trampolines.h"

#include "agent/include/sojourn.h"
#include "agent/inproc/hooks/arch.h"
#include "agent/inproc/hooks/dispatch.h"
#include "agent/inproc/hooks/dynamic_view.h"
#include "agent/inproc/recorder/sys.h"

#include <string.h>
#include <sys/mman.h>

#define PAGE SJ_ARCH_PAGE_MULTIPLE
#define TRAMPOLINES_MAGIC                                                                          \
    UINT64_C(0x31534554414753) /* "SGATES1": agents of other versions look for it */

typedef struct api_function {
    const char *name;
    uint64_t address;
} api_function;

enum { TRAMPOLINES = 3 };

/* The second page. */
typedef struct trampoline_cells {
    uint64_t magic;
    uint64_t closed; /* address of a return */
    uint64_t targets[TRAMPOLINES];
} trampoline_cells;

static trampoline_cells *cells;

static uint64_t trampoline_address(uint32_t trampoline)
{
    return (uint64_t)(uintptr_t)cells - PAGE + (uint64_t)trampoline * SJ_DISPATCH_STUB_BYTES;
}

/* A trampoline enters the "record" whose first word is its cell. */
static void write_trampoline(uint8_t *code, const trampoline_cells *of, uint32_t trampoline)
{
    sj_arch_write_stub(code, (const sj_dispatch_record *)(const void *)&of->targets[trampoline]);
}

/* adopt_pages takes over the pages of an earlier agent, if `held` is one of their trampolines. */
static bool adopt_pages(uint64_t held, uint32_t trampoline)
{
    uint8_t expected[SJ_DISPATCH_STUB_BYTES];
    const uint64_t page = held & ~(PAGE - 1);
    trampoline_cells *found = (trampoline_cells *)(page + PAGE);
    if (held - page != (uint64_t)trampoline * SJ_DISPATCH_STUB_BYTES) {
        return false;
    }
    write_trampoline(expected, found, trampoline);
    if (memcmp((const void *)held, expected, sizeof(expected)) != 0 ||
        found->magic != TRAMPOLINES_MAGIC) {
        return false;
    }
    cells = found;
    return true;
}

static bool make_pages(void)
{
    uint8_t *pages = sj_sys_allocate(2 * PAGE);
    if (pages == NULL) {
        return false;
    }
    trampoline_cells *made = (trampoline_cells *)(void *)(pages + PAGE);
    uint8_t *closed = pages + (size_t)TRAMPOLINES * SJ_DISPATCH_STUB_BYTES;
    const uint32_t code = SJ_ARCH_RETURN_CODE;
    for (uint32_t i = 0; i < TRAMPOLINES; i++) {
        write_trampoline(pages + (size_t)i * SJ_DISPATCH_STUB_BYTES, made, i);
        made->targets[i] = (uint64_t)(uintptr_t)closed;
    }
    memcpy(closed, &code, sizeof(code));
    *made = (trampoline_cells){.magic = TRAMPOLINES_MAGIC,
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

static const api_function *api_functions(void)
{
    static api_function list[TRAMPOLINES];
    list[0] =
        (api_function){"sojourn_agent_mark_begin", (uint64_t)(uintptr_t)sojourn_agent_mark_begin};
    list[1] = (api_function){"sojourn_agent_mark_end", (uint64_t)(uintptr_t)sojourn_agent_mark_end};
    list[2] = (api_function){"sojourn_agent_request", (uint64_t)(uintptr_t)sojourn_agent_request};
    return list;
}

/* The slot refers to a weak function of that name, which the module does not define. */
static bool is_reference(const sj_dynamic_view *view, const sj_slot *slot, const char *name)
{
    const ElfW(Sym) *symbol = &view->symbols[slot->symbol];
    return symbol->st_shndx == SHN_UNDEF && ELF64_ST_BIND(symbol->st_info) == STB_WEAK &&
           strcmp(slot->name, name) == 0;
}

typedef enum binding_step { STEP_FIND, STEP_BIND } binding_step;

/* Visits the references to one function. Those that are called come first (tables[0]): as soon as
 * the others, which are compared, are not 0, the program calls. */
static void visit_references(const sj_dynamic_view *view, uint32_t trampoline, binding_step step,
                             bool *wanted)
{
    const char *name = api_functions()[trampoline].name;
    for (sj_slot slot = {0}; sj_slot_next(view, &slot);) {
        if (!is_reference(view, &slot, name)) {
            continue;
        }
        const uint64_t held = *(const volatile uint64_t *)slot.address;
        const bool is_called = slot.type == SJ_SLOT_JUMP;
        if (step == STEP_FIND) {
            *wanted = *wanted || (!is_called && held == 0);
            if (held != 0 && !is_called && cells == NULL) {
                (void)adopt_pages(held, trampoline);
            }
        } else if (held == 0 || is_called) {
            (void)sj_slot_write(view, slot.address, trampoline_address(trampoline));
        }
    }
}

static int bind_module(struct dl_phdr_info *info, size_t size, void *context)
{
    sj_dynamic_view view;
    const binding_step *step = context;
    (void)size;
    if (!sj_dynamic_view_read(info, &view)) {
        return 0;
    }
    for (uint32_t trampoline = 0; trampoline < TRAMPOLINES; trampoline++) {
        bool wanted = false;
        visit_references(&view, trampoline, STEP_FIND, &wanted);
        if (*step == STEP_BIND && wanted && (cells != NULL || make_pages())) {
            visit_references(&view, trampoline, STEP_BIND, &wanted);
        }
    }
    return 0;
}

uint64_t sj_api_trampolines_bind(void)
{
    for (binding_step step = STEP_FIND; step <= STEP_BIND; step++) {
        (void)dl_iterate_phdr(bind_module, &step);
    }
    for (uint32_t i = 0; cells != NULL && i < TRAMPOLINES; i++) {
        __atomic_store_n(&cells->targets[i], api_functions()[i].address, __ATOMIC_RELEASE);
    }
    return cells != NULL ? 2 * PAGE : 0;
}

void sj_api_trampolines_close(void)
{
    for (uint32_t i = 0; cells != NULL && i < TRAMPOLINES; i++) {
        __atomic_store_n(&cells->targets[i], cells->closed, __ATOMIC_RELEASE);
    }
}
