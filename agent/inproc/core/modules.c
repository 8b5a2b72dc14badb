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
static struct r_debug *loader_state;
static sj_hooked_module loader_hook;
static void (*on_modules)(void);
static sj_on_module *on_module;

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

/* New modules that a walk over the loader's list has found while the thread is in the loader. They
 * are announced after the walk. */
enum { MAX_PENDING = 64 };
static struct dl_phdr_info pending[MAX_PENDING];

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

/* Maps a plan file for reading, and fills in its identity. Returns NULL on failure. */
static void *map_plan(const char *path, sj_ready_plan *identity)
{
    const long file = sj_sys_open_at(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    if (file < 0) {
        return NULL;
    }
    void *bytes = NULL;
    if (sj_ready_identify((int)file, identity) && identity->bytes > 0) {
        bytes =
            sj_sys_map(NULL, identity->bytes, PROT_READ, MAP_PRIVATE | MAP_POPULATE, (int)file, 0);
        bytes = sj_sys_failed(bytes) ? NULL : bytes;
    }
    (void)sj_sys_close((int)file);
    return bytes;
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

/* A plan from a reply of the recorder. */
typedef struct received_plan {
    sj_link_plan head;
    const char *path;   /* path of its file; NULL: the reply contained the plan */
    sj_ready_plan file; /* identity of the mapped file */
    void *bytes;        /* NULL: not read yet, or unreadable */
    size_t size_bytes;
    bool is_mapped;
} received_plan;

/* Reads a plan from a reply. A plan inside the packet is copied, because the packet's memory is
 * needed for the reply. */
static sj_status read_plan(const sj_link *link, received_plan *plan)
{
    static _Alignas(16) uint8_t buffer[SJ_LINK_PLAN_BYTES]; /* only one conversation at a time */
    static char path[SJ_MODULE_PATH_BYTES];
    if (link->packet.payload_bytes < sizeof(plan->head)) {
        return SJ_ECORRUPT;
    }
    const uint8_t *payload = link->payload;
    memcpy(&plan->head, payload, sizeof(plan->head));
    const uint32_t bytes = link->packet.payload_bytes - (uint32_t)sizeof(plan->head);
    if (plan->head.path_bytes == 0 && bytes <= sizeof(buffer)) {
        memcpy(buffer, payload + sizeof(plan->head), bytes);
        plan->bytes = buffer;
        plan->size_bytes = bytes;
        return SJ_OK;
    }
    if (plan->head.path_bytes != bytes || bytes >= sizeof(path)) {
        return SJ_ECORRUPT;
    }
    memcpy(path, payload + sizeof(plan->head), bytes);
    path[bytes] = '\0';
    plan->path = path;
    return SJ_OK;
}

/* Applies ready stubs, which may exist at the start of a program. */
static bool apply_ready(const received_plan *plan, plan_manner manner, module_entry *entry,
                        sj_hooks_report *report)
{
    const sj_ready_place place = {.bias = entry->bias,
                                  .text_low = entry->text_low,
                                  .text_high = entry->text_high,
                                  .first_function = plan->head.first_function};
    return manner == PLAN_APPLY && plan->path != NULL && !entry->is_generated &&
           sj_ready_apply(plan->path, &place, &entry->hooked, report);
}

static void write_received_plan(received_plan *plan, plan_manner manner, module_entry *entry,
                                sj_hooks_report *report)
{
    if (plan->path != NULL) {
        plan->bytes = map_plan(plan->path, &plan->file);
        plan->size_bytes = plan->file.bytes;
        plan->is_mapped = plan->bytes != NULL;
    }
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

/* Applies the plan in the recorder's reply, and reports the result. For generated code it reports
 * only failures. `marks` is for generated code (see sj_hooks_report), else NULL. */
static sj_status apply_plan(sj_link *link, module_entry *entry, plan_manner manner, uint8_t *marks)
{
    received_plan plan = {0};
    SJ_TRY(read_plan(link, &plan));
    const uint64_t start_ns = entry->is_generated ? 0 : sj_sys_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    uint8_t *payload = sj_link_payload(link);
    sj_hooks_report report = {
        .marks = marks,
        .failures = (sj_link_failure *)(void *)(payload + sizeof(sj_link_applied)),
        .failures_capacity =
            (SJ_LINK_MAX_BYTES - sizeof(sj_link_packet) - sizeof(sj_link_applied)) /
            sizeof(sj_link_failure)};
    if (!apply_ready(&plan, manner, entry, &report)) {
        write_received_plan(&plan, manner, entry, &report);
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

/* Makes an entry for a new module, and asks the recorder for its plan. */
static void announce_new(sweep_state *state, struct dl_phdr_info *info, sj_link_module *module)
{
    char path[SJ_MODULE_PATH_BYTES];
    module->path_bytes = sj_module_read_path(info->dlpi_name, module->is_main != 0, path);
    if (module->path_bytes == 0) {
        return;
    }
    state->found_new = true;
    module_entry *entry = state->link != NULL ? add_entry(module) : NULL;
    if (entry == NULL) {
        return;
    }
    state->has_added = true;
    if (state->passes_over) {
        entry->is_excluded = true;
        return;
    }
    sj_module_read_build_id(info, module);
    const plan_manner as_loaded =
        state->moment != SJ_MODULES_LOADED ? PLAN_APPLY_LOADING : PLAN_APPLY;
    state->status =
        announce_module(state->link, module, path,
                        sojourn_agent_state.prepare_only != 0 ? PLAN_PREPARE : as_loaded, entry);
    if (state->moment != SJ_MODULES_LOADED && on_module != NULL) {
        on_module(info);
    }
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
    if (!has_text || is_agent(&module) || mark_seen(module.bias, module.text_low)) {
        return 0;
    }
    if (state->moment == SJ_MODULES_IN_LOADER) {
        pending[state->pending_count++] = *info;
        return state->pending_count == MAX_PENDING;
    }
    announce_new(state, info, &module);
    return state->status != SJ_OK;
}

/* Announces the pending modules. The loader's own lock keeps them mapped. The thread does not hold
 * the lock of dl_iterate_phdr: other threads may need it while the recorder plans, and so may a
 * child that a signal handler forks meanwhile. */
static void announce_pending(sweep_state *state)
{
    for (uint32_t i = 0; i < state->pending_count && state->status == SJ_OK; i++) {
        sj_link_module module = {.is_main = 0};
        if (read_segments(&pending[i], &module)) {
            announce_new(state, &pending[i], &module);
        }
    }
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

static int prepare_known(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    sweep_state *state = context;
    sj_link_module module = {.is_main = state->is_first};
    char path[SJ_MODULE_PATH_BYTES];
    state->is_first = false;
    if (!read_segments(info, &module) || find_entry(module.bias, module.text_low) == NULL) {
        return 0;
    }
    module.path_bytes = sj_module_read_path(info->dlpi_name, module.is_main != 0, path);
    if (module.path_bytes != 0) {
        sj_module_read_build_id(info, &module);
        state->status = prepare_more(state->link, &module, path);
    }
    return state->status != SJ_OK;
}

/* Visits and sums the loader's list. Afterwards, entries whose `seen` is older than `sweep` were
 * unloaded. In the loader, new modules are announced after a walk. If there were more than
 * `pending` holds, walks again. */
static sweep_state visit_modules(sj_link *link, sj_modules_moment moment)
{
    sweep_state state = {.link = link, .status = SJ_OK, .moment = moment, .is_first = true};
    sweep++;
    if (link != NULL && moment != SJ_MODULES_IN_LOADER) {
        (void)dl_iterate_phdr(visit_module, &state);
        return state;
    }
    do {
        state.is_first = true;
        state.has_added = false;
        state.pending_count = 0;
        (void)sj_module_walk(visit_module, &state);
        announce_pending(&state);
    } while (state.status == SJ_OK && state.has_added && state.pending_count == MAX_PENDING);
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
    sweep_state state = {.link = &none, .status = SJ_OK, .is_first = true, .passes_over = true};
    begin_change();
    sweep++;
    (void)dl_iterate_phdr(visit_module, &state);
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
    sweep_state state = {.link = link, .status = SJ_OK, .is_first = true};
    begin_change();
    (void)dl_iterate_phdr(prepare_known, &state);
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
    if (loader_state->r_state == RT_CONSISTENT && sj_recorder_is_armed() && sj_modules_changed()) {
        on_modules();
    }
}
