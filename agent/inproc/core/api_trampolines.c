/* Design notes
 *
 * A call by sojourn.h reads its reference twice: it compares the reference with 0 and then calls
 * it. So a reference that was set must never become 0 again. It is set to a lasting trampoline
 * (lasting.h). The next agent finds the trampolines by the references. So there is one pair of
 * pages, however often tracers attach to the process. */
#include "agent/inproc/core/api_trampolines.h"

#include "agent/include/sojourn.h"
#include "agent/inproc/hooks/dynamic_view.h"
#include "agent/inproc/hooks/lasting.h"
#include "agent/inproc/hooks/module_walk.h"

#include <string.h>

#define TRAMPOLINES_MAGIC                                                                          \
    UINT64_C(0x31534554414753) /* "SGATES1": agents of other versions search for it */

typedef struct api_function {
    const char *name;
    uint64_t address;
} api_function;

enum { TRAMPOLINES = 3 };

static sj_lasting *lasting;

static const api_function *api_functions(void)
{
    static api_function list[TRAMPOLINES];
    list[0] =
        (api_function){"sojourn_agent_mark_begin", (uint64_t)(uintptr_t)sojourn_agent_mark_begin};
    list[1] = (api_function){"sojourn_agent_mark_end", (uint64_t)(uintptr_t)sojourn_agent_mark_end};
    list[2] = (api_function){"sojourn_agent_request", (uint64_t)(uintptr_t)sojourn_agent_request};
    return list;
}

/* True if the slot refers to a weak function of that name, which the module does not define. */
static bool is_reference(const sj_dynamic_view *view, const sj_slot *slot, const char *name)
{
    const ElfW(Sym) *symbol = &view->symbols[slot->symbol];
    return symbol->st_shndx == SHN_UNDEF && ELF64_ST_BIND(symbol->st_info) == STB_WEAK &&
           strcmp(slot->name, name) == 0;
}

typedef enum binding_step { STEP_FIND, STEP_BIND } binding_step;

/* Visits the references to one function. The called ones come first (tables[0]). The others are
 * compared with 0: once they are set, the program calls the first ones. */
static void visit_references(const sj_dynamic_view *view, uint32_t trampoline, binding_step step,
                             bool *wanted)
{
    const char *name = api_functions()[trampoline].name;
    for (sj_slot slot = {0}; sj_slot_next(view, &slot);) {
        if (!is_reference(view, &slot, name)) {
            continue;
        }
        const uint64_t held = *(const volatile uint64_t *)slot.address;
        const bool is_called = slot.type == SJ_MACHINE_JUMP_SLOT;
        if (step == STEP_FIND) {
            *wanted = *wanted || (!is_called && held == 0);
            if (held != 0 && !is_called && lasting == NULL) {
                lasting = sj_lasting_of(held, trampoline, TRAMPOLINES_MAGIC);
            }
        } else if (held == 0 || is_called) {
            (void)sj_slot_write(view, slot.address, sj_lasting_address(lasting, trampoline));
        }
    }
}

static bool has_pages(void)
{
    if (lasting == NULL) {
        lasting = sj_lasting_new(TRAMPOLINES_MAGIC, TRAMPOLINES);
    }
    return lasting != NULL;
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
        if (*step == STEP_BIND && wanted && has_pages()) {
            visit_references(&view, trampoline, STEP_BIND, &wanted);
        }
    }
    return 0;
}

uint64_t sj_api_trampolines_bind(void)
{
    for (binding_step step = STEP_FIND; step <= STEP_BIND; step++) {
        (void)sj_module_walk(bind_module, &step);
    }
    for (uint32_t i = 0; lasting != NULL && i < TRAMPOLINES; i++) {
        sj_lasting_open(lasting, i, api_functions()[i].address);
    }
    return lasting != NULL ? sj_lasting_bytes() : 0;
}

void sj_api_trampolines_close(void)
{
    if (lasting != NULL) {
        sj_lasting_close(lasting, TRAMPOLINES);
    }
}
