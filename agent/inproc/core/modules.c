/* Design notes
 *
 * The loader calls an empty function (r_brk) for debuggers each time that it has mapped or unmapped
 * modules. It does so before relocations and constructors, and under its own lock. The agent
 * replaces that function. Only there can it hook later modules before any of their code runs, for
 * every way to load them (dlopen, dlmopen, NSS, iconv). It need not interpose any function. */
#include "agent/inproc/core/modules.h"
#include "agent/inproc/core/arch.h"
#include "agent/inproc/core/find_object.h"
#include "agent/inproc/core/module_file.h"
#include "agent/inproc/core/received_plan.h"

#include "agent/inproc/hooks/arch.h"
#include "agent/inproc/hooks/hooks.h"
#include "agent/inproc/hooks/module_walk.h"
#include "agent/inproc/hooks/overwritten.h"
#include "agent/inproc/hooks/ready.h"
#include "agent/inproc/recorder/callers.h"
#include "agent/inproc/recorder/recorder.h"
#include "agent/inproc/recorder/sys.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { MAX_MODULES = 16384 };

typedef struct module_entry {
    uint64_t bias;
    uint64_t text_low;
    uint64_t text_high; /* 0: the entry is free */
    uint32_t seen;      /* latest sweep in which the loader had the module */
    uint32_t asked;     /* latest transition in which the recorder was asked about the module */
    bool is_excluded;   /* the recorder has no plan for it */
    bool is_generated;  /* not a module, but code that a runtime has generated */
    /* Dispatched calls may lead to its functions (sj_hooks_expect_dispatch). */
    bool expects_dispatch;
    sj_hooked_module hooked;
} module_entry;

static module_entry modules[MAX_MODULES];
static uint32_t entry_count; /* number of entries that were ever used; later pages take no memory */
static uint32_t first_free;  /* all entries before this one are used */
static uint32_t sweep;
static uint32_t transitions; /* number of transitions that were prepared */
static struct r_debug *loader_state;
static sj_hooked_module loader_hook;
static void (*on_modules)(void);
static sj_on_module *on_module;

typedef int module_visit(struct dl_phdr_info *info, size_t size, void *context);

/* State of one sweep over the loader's list. */
typedef struct sweep_state {
    sj_link *link; /* NULL: only check for new modules */
    sj_status status;
    bool found_new;
    sj_modules_moment moment;
    uint32_t pending_count; /* modules in `pending` */
    bool has_added;         /* an entry was made for a pending module */
    bool is_first;          /* the next module is the program itself */
    bool passes_over;       /* new modules stay as they are */
    uint64_t sum;           /* sum of the loader's list when it was visited */
} sweep_state;

/* Modules that a walk over the loader's list has found. The recorder is asked about them after the
 * walk: the thread does not hold the lock of dl_iterate_phdr while the recorder plans. Other
 * threads may need the lock meanwhile, and so may a child that is forked meanwhile. */
typedef struct pending_module {
    sj_link_module module; /* with the build-id */
    char path[SJ_MODULE_PATH_BYTES];
} pending_module;

enum { MAX_PENDING = 32 };
static pending_module pending[MAX_PENDING]; /* used by one sweep at a time */

/* Finds the executable segment and the loader's debug structure. */
static bool read_segments(const struct dl_phdr_info *info, sj_link_module *module)
{
    module->bias = info->dlpi_addr;
    for (uint32_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD && (segment->p_flags & PF_X) != 0 &&
            module->text_high == 0) {
            module->text_low = info->dlpi_addr + segment->p_vaddr;
            module->text_high = module->text_low + segment->p_memsz;
        }
        const ElfW(Dyn) *entry = (const ElfW(Dyn) *)(info->dlpi_addr + segment->p_vaddr);
        while (segment->p_type == PT_DYNAMIC && module->is_main && entry->d_tag != DT_NULL) {
            if (entry->d_tag == DT_DEBUG) {
                loader_state = (struct r_debug *)entry->d_un.d_ptr;
            }
            entry++;
        }
    }
    return module->text_high != 0;
}

static bool is_entry_of(const module_entry *entry, uint64_t bias, uint64_t text_low)
{
    return entry->text_high != 0 && entry->bias == bias && entry->text_low == text_low;
}

static module_entry *find_entry(uint64_t bias, uint64_t text_low)
{
    for (uint32_t i = 0; i < entry_count; i++) {
        if (is_entry_of(&modules[i], bias, text_low)) {
            return &modules[i];
        }
    }
    return NULL;
}

/* Marks all entries of a module. It has several entries, each with its own hooks, if its selection
 * has changed. */
static bool mark_seen(uint64_t bias, uint64_t text_low)
{
    bool found = false;
    for (uint32_t i = 0; i < entry_count; i++) {
        if (is_entry_of(&modules[i], bias, text_low)) {
            modules[i].seen = sweep;
            found = true;
        }
    }
    return found;
}

static module_entry *add_entry(const sj_link_module *module)
{
    uint32_t place = first_free;
    while (place < entry_count && modules[place].text_high != 0) {
        place++;
    }
    first_free = place;
    if (place == MAX_MODULES) {
        return NULL;
    }
    if (place == entry_count) {
        entry_count++;
        sojourn_agent_state.hooked_count = entry_count;
    }
    modules[place] = (module_entry){.bias = module->bias,
                                    .text_low = module->text_low,
                                    .text_high = module->text_high,
                                    .seen = sweep};
    return &modules[place];
}

static void free_entry(module_entry *entry)
{
    const uint32_t place = (uint32_t)(entry - modules);
    sj_hooks_forget(&entry->hooked);
    *entry = (module_entry){0};
    first_free = place < first_free ? place : first_free;
}

/* False if the target has an entry probe that does not check for dispatched calls. A call
 * dispatched to it would be recorded as unwound. */
static bool may_dispatch_to(uint64_t target)
{
    for (uint32_t i = 0; i < entry_count; i++) {
        const module_entry *entry = &modules[i];
        if (target >= entry->text_low && target < entry->text_high &&
            entry->hooked.change_count != 0 && !entry->expects_dispatch) {
            return false;
        }
    }
    return true;
}

/* State of the module to which a plan is applied: relocated but not running yet, being mapped by
 * the loader, or running. */
typedef enum plan_manner { PLAN_APPLY, PLAN_APPLY_LOADING, PLAN_PREPARE } plan_manner;

static sj_status write_plan(const sj_link_plan *plan, plan_manner manner, const void *bytes,
                            size_t size_bytes, module_entry *entry, sj_hooks_report *report)
{
    sj_hooked_module *hooked = &entry->hooked;
    entry->expects_dispatch = sj_hooks_expects_dispatch();
    if (manner == PLAN_PREPARE) {
        SJ_TRY(
            sj_hooks_prepare(bytes, size_bytes, entry->bias, plan->first_function, hooked, report));
        sj_library_calls_prepare(hooked, may_dispatch_to, report);
        return SJ_OK;
    }
    SJ_TRY(sj_hooks_apply(bytes, size_bytes, entry->bias, plan->first_function, hooked, report));
    if (manner == PLAN_APPLY_LOADING) {
        sj_library_calls_defer(hooked, sj_arch_init_entry, report);
    } else {
        sj_library_calls_bind(hooked, report);
    }
    return SJ_OK;
}

/* Replaces the functions' indexes in the failures by their ids, by which the recorder knows
 * generated code. */
static void name_failures(const void *bytes, sj_hooks_report *report, uint32_t count)
{
    const sj_plan_function *functions = sj_plan_functions(bytes);
    for (uint32_t i = 0; i < count; i++) {
        report->failures[i].function = functions[report->failures[i].function].name;
    }
}

/* Applies ready stubs, which may exist at the start of a program. */
static bool apply_ready(const sj_received_plan *plan, plan_manner manner, module_entry *entry,
                        sj_hooks_report *report)
{
    const sj_ready_place place = {.bias = entry->bias,
                                  .text_low = entry->text_low,
                                  .text_high = entry->text_high,
                                  .first_function = plan->head.first_function};
    return manner == PLAN_APPLY && plan->path != NULL && !entry->is_generated &&
           sj_ready_apply(plan->path, &place, &entry->hooked, report);
}

static void write_received_plan(sj_received_plan *plan, plan_manner manner, module_entry *entry,
                                sj_hooks_report *report)
{
    sj_received_plan_map(plan);
    const sj_status status = plan->bytes != NULL ? write_plan(&plan->head, manner, plan->bytes,
                                                              plan->size_bytes, entry, report)
                                                 : SJ_ENOTFOUND;
    if (status != SJ_OK) {
        report->hooked = 0;
        report->failed = 0;
    } else if (manner == PLAN_APPLY && plan->is_mapped && !entry->is_generated) {
        sj_ready_keep(plan->path, &plan->file, plan->bytes, &entry->hooked, report);
    }
}

/* Arguments of use_if_mapped. */
typedef struct plan_use {
    sj_received_plan *plan;
    module_entry *entry;
    plan_manner manner;
    sj_hooks_report *report;
} plan_use;

static void use_plan(const plan_use *use)
{
    if (!apply_ready(use->plan, use->manner, use->entry, use->report)) {
        write_received_plan(use->plan, use->manner, use->entry, use->report);
    }
}

static bool is_module_of(const module_entry *entry, const struct dl_phdr_info *info)
{
    sj_link_module module = {.is_main = 0};
    return info->dlpi_addr == entry->bias && read_segments(info, &module) &&
           module.text_low == entry->text_low;
}

/* Applies the plan to its module. The loader cannot unmap the module meanwhile. */
static int use_if_mapped(struct dl_phdr_info *info, size_t size, void *context)
{
    const plan_use *use = context;
    (void)size;
    if (!is_module_of(use->entry, info)) {
        return 0;
    }
    use_plan(use);
    return 1;
}

/* Applies the plan in the recorder's reply, and reports the result. A module that was unloaded
 * while the recorder planned stays without hooks. For generated code it reports only failures.
 * `marks` is for generated code (see sj_hooks_report), else NULL. */
static sj_status apply_plan(sj_link *link, module_entry *entry, plan_manner manner, uint8_t *marks)
{
    sj_received_plan plan = {0};
    SJ_TRY(sj_received_plan_read(link, &plan));
    const uint64_t start_ns = entry->is_generated ? 0 : sj_sys_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    uint8_t *payload = sj_link_payload(link);
    sj_hooks_report report = {
        .marks = marks,
        .failures = (sj_link_failure *)(void *)(payload + sizeof(sj_link_applied)),
        .failures_capacity =
            (SJ_LINK_MAX_BYTES - sizeof(sj_link_packet) - sizeof(sj_link_applied)) /
            sizeof(sj_link_failure)};
    plan_use use = {.plan = &plan, .entry = entry, .manner = manner, .report = &report};
    if (entry->is_generated) {
        use_plan(&use);
    } else {
        (void)sj_module_walk(use_if_mapped, &use);
    }
    const uint32_t reported =
        report.failed < report.failures_capacity ? report.failed : report.failures_capacity;
    if (plan.bytes != NULL && entry->is_generated) {
        name_failures(plan.bytes, &report, reported);
    }
    if (plan.is_mapped) {
        (void)sj_sys_unmap(plan.bytes, plan.size_bytes);
    }
    if (entry->is_generated && reported == 0) {
        return SJ_OK;
    }
    const sj_link_applied applied = {
        .bias = entry->bias,
        .first_function = entry->is_generated ? 0 : plan.head.first_function,
        .hooked = report.hooked,
        .failed = reported,
        .stub_bytes = report.stub_bytes,
        .cpu_ns = entry->is_generated ? 0 : sj_sys_clock_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns};
    memcpy(payload, &applied, sizeof(applied));
    return sj_link_send(link, SJ_LINK_APPLIED,
                        (uint32_t)(sizeof(applied) + reported * sizeof(sj_link_failure)));
}

static sj_status ask_recorder(sj_link *link, sj_link_type type, const sj_link_module *module,
                              const char *path)
{
    uint8_t *payload = sj_link_payload(link);
    memcpy(payload, module, sizeof(*module));
    memcpy(payload + sizeof(*module), path, module->path_bytes);
    SJ_TRY(sj_link_send(link, type, (uint32_t)sizeof(*module) + module->path_bytes));
    return sj_link_receive(link);
}

/* Requests a plan for the imports of a module that were not in its plan. They get a separate
 * entry. */
static sj_status ask_for_imports(sj_link *link, const sj_link_module *module, const char *path,
                                 plan_manner manner, module_entry **entry)
{
    *entry = NULL;
    if ((link->runtimes & SJ_LINK_RUNTIME_LIBRARY_CALLS) == 0) {
        return SJ_OK;
    }
    SJ_TRY(ask_recorder(link, SJ_LINK_IMPORTS, module, path));
    if (link->packet.type != SJ_LINK_PLAN) {
        return link->packet.type == SJ_LINK_SKIP ? SJ_OK : SJ_ECORRUPT;
    }
    *entry = add_entry(module);
    return *entry != NULL ? apply_plan(link, *entry, manner, NULL) : SJ_OK;
}

static sj_status announce_module(sj_link *link, const sj_link_module *module, const char *path,
                                 plan_manner manner, module_entry *entry)
{
    module_entry *imports;
    SJ_TRY(ask_recorder(link, SJ_LINK_MODULE, module, path));
    if (link->packet.type == SJ_LINK_PLAN) {
        SJ_TRY(apply_plan(link, entry, manner, NULL));
        return entry->hooked.calls != NULL ? SJ_OK
                                           : ask_for_imports(link, module, path, manner, &imports);
    }
    entry->is_excluded = true;
    return link->packet.type == SJ_LINK_SKIP ? SJ_OK : SJ_ECORRUPT;
}

bool sj_modules_is_excluded(uint64_t address)
{
    for (uint32_t i = 0; i < entry_count; i++) {
        if (address >= modules[i].text_low && address < modules[i].text_high) {
            return modules[i].is_excluded;
        }
    }
    return false;
}

static bool is_agent(const sj_link_module *module)
{
    const uint64_t here = (uint64_t)(uintptr_t)&sj_modules_announce;
    return here >= module->text_low && here < module->text_high;
}

/* Sums the loader's list, which does not change while dl_iterate_phdr runs. */
static uint64_t sum_modules(void)
{
    uint64_t sum = 0;
    const struct link_map *map = loader_state != NULL ? loader_state->r_map : NULL;
    for (; map != NULL; map = map->l_next) {
        sum += SJ_AGENT_STATE_MODULE_SUM(map->l_addr, (uint64_t)(uintptr_t)map);
    }
    return sum;
}

/* Stores a module in `pending`. Returns false if it has no file. */
static bool keep_pending(sweep_state *state, const struct dl_phdr_info *info,
                         const sj_link_module *module)
{
    pending_module *kept = &pending[state->pending_count];
    kept->module = *module;
    kept->module.path_bytes =
        sj_module_read_path(info->dlpi_name, module->is_main != 0, kept->path);
    if (kept->module.path_bytes == 0) {
        return false;
    }
    sj_module_read_build_id(info, &kept->module);
    state->pending_count++;
    return true;
}

static int visit_module(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    sweep_state *state = context;
    sj_link_module module = {.is_main = state->is_first};
    const bool has_text = read_segments(info, &module);
    if (state->is_first) {
        state->sum = sum_modules(); /* read_segments has found the list by now */
        state->is_first = false;
    }
    if (!has_text || is_agent(&module) || mark_seen(module.bias, module.text_low) ||
        !keep_pending(state, info, &module)) {
        return 0;
    }
    state->found_new = true;
    if (state->link == NULL) { /* the walk must mark all modules */
        state->pending_count = 0;
    }
    return state->pending_count == MAX_PENDING;
}

static int pass_on(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    if (!is_module_of(context, info)) {
        return 0;
    }
    on_module(info);
    return 1;
}

/* Makes an entry for a new module, and asks the recorder for its plan. */
static void announce_new(sweep_state *state, const pending_module *new_module)
{
    module_entry *entry = add_entry(&new_module->module);
    if (entry == NULL) {
        return;
    }
    state->has_added = true;
    if (state->passes_over) {
        entry->is_excluded = true;
        return;
    }
    const plan_manner as_loaded =
        state->moment != SJ_MODULES_LOADED ? PLAN_APPLY_LOADING : PLAN_APPLY;
    state->status =
        announce_module(state->link, &new_module->module, new_module->path,
                        sojourn_agent_state.prepare_only != 0 ? PLAN_PREPARE : as_loaded, entry);
    /* not in a child that was forked meanwhile, where the list may stay locked */
    if (state->moment != SJ_MODULES_LOADED && on_module != NULL && sj_link_is_own(state->link)) {
        (void)sj_module_walk(pass_on, entry);
    }
}

/* Visits the modules in rounds, until a round has not filled `pending`. `visit` stores modules
 * there, and `announce` is called with each, if there is a link. */
static void visit_in_rounds(sweep_state *state, module_visit *visit,
                            void (*announce)(sweep_state *state, const pending_module *module))
{
    do {
        state->is_first = true;
        state->has_added = false;
        state->pending_count = 0;
        (void)sj_module_walk(visit, state);
        for (uint32_t i = 0;
             i < state->pending_count && state->link != NULL && state->status == SJ_OK; i++) {
            announce(state, &pending[i]);
        }
    } while (state->status == SJ_OK && state->has_added && state->pending_count == MAX_PENDING);
}

/* Returns the entry for the hooks of a transition: the module's first entry if it has no hooks,
 * else a new one. */
static module_entry *entry_for_more(const sj_link_module *module)
{
    module_entry *first = find_entry(module->bias, module->text_low);
    if (first->hooked.change_count != 0 || first->hooked.calls != NULL) {
        return add_entry(module);
    }
    sj_hooks_forget(&first->hooked);
    first->is_excluded = false;
    return first;
}

/* Frees an entry without hooks. The next transition asks again for functions that could not be
 * hooked, so unused entries would accumulate. An entry with functions noted as callers is used even
 * without hooks. */
static void drop_unused(module_entry *entry)
{
    uint32_t same = 0;
    if (entry == NULL || entry->hooked.change_count != 0 || sj_recorder_has_noted(&entry->hooked)) {
        return;
    }
    for (uint32_t i = 0; i < entry_count; i++) {
        same += is_entry_of(&modules[i], entry->bias, entry->text_low);
    }
    if (same > 1) {
        free_entry(entry);
    }
}

static void mark_asked(uint64_t bias, uint64_t text_low)
{
    for (uint32_t i = 0; i < entry_count; i++) {
        if (is_entry_of(&modules[i], bias, text_low)) {
            modules[i].asked = transitions;
        }
    }
}

static sj_status prepare_more(sj_link *link, const sj_link_module *module, const char *path)
{
    module_entry *entry;
    SJ_TRY(ask_recorder(link, SJ_LINK_TRANSITION, module, path));
    if (link->packet.type == SJ_LINK_PLAN) {
        entry = entry_for_more(module);
        SJ_TRY(entry != NULL ? apply_plan(link, entry, PLAN_PREPARE, NULL) : SJ_OK);
        drop_unused(entry);
    } else if (link->packet.type != SJ_LINK_SKIP) {
        return SJ_ECORRUPT;
    }
    SJ_TRY(ask_for_imports(link, module, path, PLAN_PREPARE, &entry));
    drop_unused(entry);
    return SJ_OK;
}

static int visit_known(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    sweep_state *state = context;
    sj_link_module module = {.is_main = state->is_first};
    state->is_first = false;
    if (!read_segments(info, &module)) {
        return 0;
    }
    const module_entry *entry = find_entry(module.bias, module.text_low);
    if (entry != NULL && entry->asked != transitions) {
        (void)keep_pending(state, info, &module);
    }
    return state->pending_count == MAX_PENDING;
}

static void prepare_known(sweep_state *state, const pending_module *known)
{
    const sj_link_module *module = &known->module;
    state->has_added = true;
    state->status = prepare_more(state->link, module, known->path);
    mark_asked(module->bias, module->text_low);
}

/* Visits and sums the loader's list. Afterwards, entries whose `seen` is older than `sweep` were
 * unloaded. */
static sweep_state visit_modules(sj_link *link, sj_modules_moment moment)
{
    sweep_state state = {.link = link, .status = SJ_OK, .moment = moment};
    sweep++;
    visit_in_rounds(&state, visit_module, announce_new);
    return state;
}

/* Frees the entries of modules that the last sweep did not find, and reports them while the link
 * works. */
static sj_status drop_unloaded(sj_link *link)
{
    sj_status status = link != NULL ? SJ_OK : SJ_ECLOSED;
    for (uint32_t i = 0; i < entry_count; i++) {
        if (modules[i].text_high == 0 || modules[i].seen == sweep || modules[i].is_generated) {
            continue;
        }
        const sj_link_module module = {.bias = modules[i].bias,
                                       .text_low = modules[i].text_low,
                                       .text_high = modules[i].text_high};
        sj_find_object_forget(module.bias);
        free_entry(&modules[i]);
        if (status == SJ_OK) {
            memcpy(sj_link_payload(link), &module, sizeof(module));
            status = sj_link_send(link, SJ_LINK_UNLOADED, sizeof(module));
        }
    }
    return status;
}

/* begin_change and end_change enclose changes of the tables that tracers read. */
static void begin_change(void)
{
    atomic_fetch_add(&sojourn_agent_state.changing, 1);
}

static void end_change(void)
{
    sojourn_agent_state.loader_state = (uint64_t)(uintptr_t)loader_state;
    atomic_fetch_add(&sojourn_agent_state.changing, 1);
}

/* True if a tracer detaches and has restored the text. A thread that loads a module may still be in
 * the agent then, and must not hook the module. Call it between begin_change and end_change, so
 * that no tracer finds the tables unchanged. */
static bool is_detaching(void)
{
    return atomic_load(&sojourn_agent_state.is_detaching) != 0;
}

void sj_modules_forget_unloaded(void)
{
    begin_change();
    sojourn_agent_state.known_modules = visit_modules(NULL, SJ_MODULES_LOADED).sum;
    (void)!drop_unloaded(NULL);
    end_change();
}

/* Unloaded modules are freed first, because a new one may lie at their address. Modules that were
 * unloaded between the visits are freed, too: `known_modules` is the second visit's, and says that
 * they are not in the tables. */
sj_status sj_modules_announce(sj_link *link, sj_modules_moment moment)
{
    begin_change();
    sweep_state visit = visit_modules(NULL, SJ_MODULES_LOADED);
    sj_status status = drop_unloaded(link);
    if (status == SJ_OK && !is_detaching()) {
        visit = visit_modules(link, moment);
        /* A failed visit has not seen all modules. */
        status = visit.status == SJ_OK ? drop_unloaded(link) : visit.status;
    }
    sojourn_agent_state.known_modules = visit.sum;
    end_change();
    return status;
}

void sj_modules_pass_over(void)
{
    sj_link none = {.socket = -1};
    sweep_state state = {.link = &none, .status = SJ_OK, .passes_over = true};
    begin_change();
    sweep++;
    visit_in_rounds(&state, visit_module, announce_new);
    end_change();
}

void sj_modules_on_initialisation(void)
{
    begin_change();
    for (uint32_t i = 0; i < entry_count; i++) {
        if (sj_library_calls_is_deferred(&modules[i].hooked)) {
            if (is_detaching()) {
                sj_library_calls_release(&modules[i].hooked);
            } else {
                sj_library_calls_bind(&modules[i].hooked, NULL);
            }
        }
    }
    end_change();
}

sj_status sj_modules_prepare_transition(sj_link *link)
{
    sweep_state state = {.link = link, .status = SJ_OK};
    begin_change();
    transitions++;
    visit_in_rounds(&state, visit_known, prepare_known);
    end_change();
    return state.status;
}

sj_status sj_modules_hook_generated(sj_link *link, uint64_t low, uint64_t high, bool runs,
                                    uint8_t *marks)
{
    const sj_link_module place = {.text_low = low, .text_high = high};
    sj_status status = SJ_ELIMIT;
    begin_change();
    module_entry *entry = is_detaching() ? NULL : add_entry(&place);
    if (entry != NULL) {
        entry->is_generated = true;
        status = apply_plan(link, entry, runs ? PLAN_PREPARE : PLAN_APPLY, marks);
        if (entry->hooked.change_count == 0) {
            free_entry(entry);
        }
    }
    end_change();
    return status;
}

void sj_modules_publish(sj_agent_state *state)
{
    state->hooked_count = entry_count;
    state->first_hooked = (uint64_t)(uintptr_t)&modules[0].hooked;
    state->hooked_stride = sizeof(modules[0]);
    state->loader_hook = (uint64_t)(uintptr_t)&loader_hook;
}

void sj_modules_forget_all(void)
{
    begin_change();
    for (uint32_t i = 0; i < entry_count; i++) {
        free_entry(&modules[i]);
    }
    sj_hooks_forget(&loader_hook);
    sj_near_release();
    /* Do not call end_change, which takes a lock of the loader. */
    atomic_fetch_add(&sojourn_agent_state.changing, 1);
}

bool sj_modules_find_overwritten(sj_overwritten *found)
{
    if (atomic_load(&sojourn_agent_state.changing) % 2 != 0) {
        return false;
    }
    for (uint32_t i = 0; i < entry_count; i++) {
        /* A runtime writes other code over methods that it has freed. */
        if (!modules[i].is_generated) {
            sj_hooks_find_overwritten(&modules[i].hooked, found);
        }
    }
    return true;
}

bool sj_modules_changed(void)
{
    const sweep_state visit = visit_modules(NULL, SJ_MODULES_LOADED);
    bool changed = visit.found_new;
    for (uint32_t i = 0; i < entry_count; i++) {
        changed = changed || (modules[i].text_high != 0 && modules[i].seen != sweep &&
                              !modules[i].is_generated);
    }
    if (!changed) {
        sojourn_agent_state.known_modules = visit.sum;
    }
    return changed;
}

sj_status sj_modules_follow(void (*on_change)(void), sj_on_module *on_new_module)
{
    if (loader_state == NULL || loader_state->r_brk == 0) {
        return SJ_EUNSUPPORTED;
    }
    const int32_t at = sj_arch_find_return(loader_state->r_brk);
    if (at < 0) {
        return SJ_EUNSUPPORTED;
    }
    uint8_t original[SJ_RETURN_PATCH_BYTES];
    const uint64_t address = loader_state->r_brk + (uint64_t)at;
    memcpy(original, (const void *)(uintptr_t)address, sizeof(original));
    on_modules = on_change;
    on_module = on_new_module;
    return sj_hooks_redirect(address, original, sizeof(original),
                             (uint64_t)(uintptr_t)&sj_arch_state_entry,
                             sojourn_agent_state.prepare_only != 0, &loader_hook);
}

sj_status sj_modules_redirect(uint64_t address, const uint8_t *original, uint8_t bytes,
                              uint8_t repeated, uint64_t target)
{
    const sj_link_module place = {
        .bias = address, .text_low = address, .text_high = address + bytes};
    sj_status status = SJ_ELIMIT;
    begin_change();
    module_entry *entry = add_entry(&place);
    if (entry != NULL) {
        entry->is_generated = true;
        status = sj_hooks_redirect(address, original, bytes, target,
                                   sojourn_agent_state.prepare_only != 0, &entry->hooked);
        if (status != SJ_OK) {
            free_entry(entry);
        } else if (repeated > bytes) {
            entry->hooked.changes[0].window = repeated;
            entry->hooked.changes[0].repeats = 1;
        }
    }
    end_change();
    return status;
}

void sj_modules_restore(void)
{
    for (uint32_t i = 0; i < entry_count; i++) {
        (void)!sj_hooks_unpatch(&modules[i].hooked);
    }
    (void)!sj_hooks_unpatch(&loader_hook);
}

void sj_modules_on_loader_event(void)
{
    if (loader_state->r_state == RT_CONSISTENT && sj_recorder_is_armed()) {
        on_modules();
    }
}
