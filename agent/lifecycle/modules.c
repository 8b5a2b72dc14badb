/* Design notes
 *
 * The loader calls an empty function (r_brk) for debuggers each time that it has mapped or unmapped
 * modules: before relocations and constructors, and under its own lock. Replacing that function is
 * the one place where later modules can be hooked before any of their code runs, however they came
 * (dlopen, dlmopen, NSS, iconv), without interposing anything. */
#include "agent/lifecycle/modules.h"

#include "agent/hooks/arch.h"
#include "agent/hooks/hooks.h"
#include "agent/lifecycle/agent.h"
#include "agent/recorder/recorder.h"
#include "agent/recorder/sys.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

enum { MAX_MODULES = 1024, MAX_PATH_BYTES = 4096, NOTE_ALIGNMENT = 4 };

typedef struct module_entry {
    uint64_t bias;
    uint64_t text_low;
    uint64_t text_high;  /* 0: the entry is free */
    uint32_t seen;       /* sweep in which the loader still had it */
    bool is_left_alone;  /* the companion has no plan for it */
    bool meets_dispatch; /* dispatched calls may lead to its functions (sj_hooks_meet_dispatch) */
    sj_hooked_module hooked;
} module_entry;

static module_entry modules[MAX_MODULES];
static uint32_t sweep;
static struct r_debug *loader_state;
static sj_hooked_module loader_hook;

/* What one sweep over the loader's list carries along. */
typedef struct sweep_state {
    sj_link *link; /* NULL: only look whether something is new */
    sj_status status;
    bool found_new;
    bool is_loading; /* what is new is not relocated yet */
    bool is_first;   /* the program itself comes first */
} sweep_state;

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

static uint32_t align_note(uint32_t bytes)
{
    return (bytes + NOTE_ALIGNMENT - 1) & ~(uint32_t)(NOTE_ALIGNMENT - 1);
}

/* Copies the build-id when the notes of [at, end) have one. */
static void read_notes(const uint8_t *at, const uint8_t *end, sj_link_module *module)
{
    ElfW(Nhdr) note;
    while ((size_t)(end - at) >= sizeof(note)) {
        memcpy(&note, at, sizeof(note));
        const uint8_t *name = at + sizeof(note);
        const size_t left = (size_t)(end - name);
        const uint64_t bytes = (uint64_t)align_note(note.n_namesz) + align_note(note.n_descsz);
        if (bytes > left) {
            return;
        }
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(name, "GNU", 4) == 0 &&
            note.n_descsz <= SJ_BUILD_ID_MAX_BYTES) {
            memcpy(module->build_id, name + 4, note.n_descsz);
            module->build_id_bytes = note.n_descsz;
            return;
        }
        at = name + bytes;
    }
}

static void read_build_id(const struct dl_phdr_info *info, sj_link_module *module)
{
    for (uint32_t i = 0; i < info->dlpi_phnum && module->build_id_bytes == 0; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type == PT_NOTE) {
            const uint8_t *notes = (const uint8_t *)(info->dlpi_addr + segment->p_vaddr);
            read_notes(notes, notes + segment->p_memsz, module);
        }
    }
}

/* Writes the module's absolute path; 0 when it has no file. */
static uint32_t read_path(const char *name, bool is_main, char *path)
{
    uint32_t used = 0;
    if (is_main) {
        const long count =
            SJ_SYS(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", path, MAX_PATH_BYTES, 0, 0);
        return count > 0 && count < MAX_PATH_BYTES ? (uint32_t)count : 0;
    }
    if (strchr(name, '/') == NULL) {
        return 0;
    }
    if (name[0] != '/') {
        const long count = SJ_SYS(SYS_getcwd, path, MAX_PATH_BYTES, 0, 0, 0, 0);
        if (count <= 1) {
            return 0;
        }
        used = (uint32_t)count - 1;
        path[used++] = '/';
    }
    const size_t length = strlen(name);
    if (used + length >= MAX_PATH_BYTES) {
        return 0;
    }
    memcpy(path + used, name, length);
    return used + (uint32_t)length;
}

static module_entry *find_entry(uint64_t bias, uint64_t text_low)
{
    for (uint32_t i = 0; i < MAX_MODULES; i++) {
        if (modules[i].text_high != 0 && modules[i].bias == bias &&
            modules[i].text_low == text_low) {
            return &modules[i];
        }
    }
    return NULL;
}

/* A module whose selection was changed has several entries, each with hooks of its own. */
static bool mark_seen(uint64_t bias, uint64_t text_low)
{
    bool found = false;
    for (uint32_t i = 0; i < MAX_MODULES; i++) {
        if (modules[i].text_high != 0 && modules[i].bias == bias &&
            modules[i].text_low == text_low) {
            modules[i].seen = sweep;
            found = true;
        }
    }
    return found;
}

static module_entry *add_entry(const sj_link_module *module)
{
    for (uint32_t i = 0; i < MAX_MODULES; i++) {
        if (modules[i].text_high == 0) {
            modules[i] = (module_entry){.bias = module->bias,
                                        .text_low = module->text_low,
                                        .text_high = module->text_high,
                                        .seen = sweep};
            return &modules[i];
        }
    }
    return NULL;
}

/* Maps a plan file for reading; NULL when it cannot be. */
static void *map_plan(const char *path, size_t *size_bytes)
{
    struct stat status;
    const long file = sj_sys_open_at(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    if (file < 0) {
        return NULL;
    }
    void *bytes = NULL;
    if (SJ_SYS(SYS_fstat, file, &status, 0, 0, 0, 0) == 0 && status.st_size > 0) {
        *size_bytes = (size_t)status.st_size;
        bytes = sj_sys_map(NULL, *size_bytes, PROT_READ, MAP_PRIVATE | MAP_POPULATE, (int)file, 0);
        bytes = sj_sys_failed(bytes) ? NULL : bytes;
    }
    (void)sj_sys_close((int)file);
    return bytes;
}

/* A call that is dispatched to a function whose head does not look for that would be told as one
 * that was unwound. */
static bool may_call(uint64_t target)
{
    for (uint32_t i = 0; i < MAX_MODULES; i++) {
        const module_entry *entry = &modules[i];
        if (target >= entry->text_low && target < entry->text_high &&
            entry->hooked.change_count != 0 && !entry->meets_dispatch) {
            return false;
        }
    }
    return true;
}

/* How a plan is applied: to what runs nothing yet and is relocated, to what the loader is mapping,
 * and to what runs. */
typedef enum plan_manner { PLAN_APPLY, PLAN_APPLY_LOADING, PLAN_PREPARE } plan_manner;

static sj_status write_plan(const sj_link_plan *plan, plan_manner manner, const void *bytes,
                            size_t size_bytes, module_entry *entry, sj_hooks_report *report)
{
    sj_hooked_module *hooked = &entry->hooked;
    entry->meets_dispatch = sj_hooks_meets_dispatch();
    if (manner == PLAN_PREPARE) {
        SJ_TRY(
            sj_hooks_prepare(bytes, size_bytes, entry->bias, plan->first_function, hooked, report));
        sj_library_calls_prepare(hooked, may_call, report);
        return SJ_OK;
    }
    SJ_TRY(sj_hooks_apply(bytes, size_bytes, entry->bias, plan->first_function, hooked, report));
    if (manner == PLAN_APPLY_LOADING) {
        sj_library_calls_defer(hooked, report);
    } else {
        sj_library_calls_bind(hooked, report);
    }
    return SJ_OK;
}

/* Applies the plan that the companion answered with, and reports. */
static sj_status apply_plan(sj_link *link, module_entry *entry, plan_manner manner)
{
    sj_link_plan plan;
    char path[MAX_PATH_BYTES];
    if (link->packet.payload_bytes < sizeof(plan)) {
        return SJ_ECORRUPT;
    }
    memcpy(&plan, link->payload, sizeof(plan));
    if (plan.path_bytes != link->packet.payload_bytes - sizeof(plan) ||
        plan.path_bytes >= sizeof(path)) {
        return SJ_ECORRUPT;
    }
    memcpy(path, link->payload + sizeof(plan), plan.path_bytes);
    path[plan.path_bytes] = '\0';

    const uint64_t start_ns = sj_sys_clock_ns(CLOCK_MONOTONIC);
    uint8_t *payload = sj_link_make(link);
    sj_hooks_report report = {
        .failures = (sj_link_failure *)(void *)(payload + sizeof(sj_link_applied)),
        .failures_room = (SJ_LINK_MAX_BYTES - sizeof(sj_link_packet) - sizeof(sj_link_applied)) /
                         sizeof(sj_link_failure)};
    size_t size_bytes = 0;
    void *bytes = map_plan(path, &size_bytes);
    if (bytes != NULL) {
        if (write_plan(&plan, manner, bytes, size_bytes, entry, &report) != SJ_OK) {
            report.hooked = 0;
            report.failed = 0;
        }
        (void)sj_sys_unmap(bytes, size_bytes);
    }
    const uint32_t told =
        report.failed < report.failures_room ? report.failed : report.failures_room;
    const sj_link_applied applied = {.bias = entry->bias,
                                     .first_function = plan.first_function,
                                     .hooked = report.hooked,
                                     .failed = told,
                                     .stub_bytes = report.stub_bytes,
                                     .elapsed_ns = sj_sys_clock_ns(CLOCK_MONOTONIC) - start_ns};
    memcpy(payload, &applied, sizeof(applied));
    return sj_link_send(link, SJ_LINK_APPLIED,
                        (uint32_t)(sizeof(applied) + told * sizeof(sj_link_failure)));
}

static sj_status ask_about(sj_link *link, sj_link_type type, const sj_link_module *module,
                           const char *path)
{
    uint8_t *payload = sj_link_make(link);
    memcpy(payload, module, sizeof(*module));
    memcpy(payload + sizeof(*module), path, module->path_bytes);
    SJ_TRY(sj_link_send(link, type, (uint32_t)sizeof(*module) + module->path_bytes));
    return sj_link_receive(link);
}

/* Asks for the imports of a module that were not in its plan: they get an entry of their own. */
static sj_status ask_for_imports(sj_link *link, const sj_link_module *module, const char *path,
                                 plan_manner manner, module_entry **entry)
{
    *entry = NULL;
    if (!link->wants_imports) {
        return SJ_OK;
    }
    SJ_TRY(ask_about(link, SJ_LINK_IMPORTS, module, path));
    if (link->packet.type != SJ_LINK_PLAN) {
        return link->packet.type == SJ_LINK_SKIP ? SJ_OK : SJ_ECORRUPT;
    }
    *entry = add_entry(module);
    return *entry != NULL ? apply_plan(link, *entry, manner) : SJ_OK;
}

static sj_status announce_module(sj_link *link, const sj_link_module *module, const char *path,
                                 plan_manner manner, module_entry *entry)
{
    module_entry *imports;
    SJ_TRY(ask_about(link, SJ_LINK_MODULE, module, path));
    if (link->packet.type == SJ_LINK_PLAN) {
        SJ_TRY(apply_plan(link, entry, manner));
        return entry->hooked.calls != NULL ? SJ_OK
                                           : ask_for_imports(link, module, path, manner, &imports);
    }
    entry->is_left_alone = true;
    return link->packet.type == SJ_LINK_SKIP ? SJ_OK : SJ_ECORRUPT;
}

bool sj_modules_is_left_alone(uint64_t address)
{
    for (uint32_t i = 0; i < MAX_MODULES; i++) {
        if (address >= modules[i].text_low && address < modules[i].text_high) {
            return modules[i].is_left_alone;
        }
    }
    return false;
}

static bool is_agent(const sj_link_module *module)
{
    const uint64_t here = (uint64_t)(uintptr_t)&sj_modules_announce;
    return here >= module->text_low && here < module->text_high;
}

static int visit_module(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    sweep_state *state = context;
    sj_link_module module = {.is_main = state->is_first};
    char path[MAX_PATH_BYTES];
    state->is_first = false;
    if (!read_segments(info, &module) || is_agent(&module)) {
        return 0;
    }
    if (mark_seen(module.bias, module.text_low)) {
        return 0;
    }
    module.path_bytes = read_path(info->dlpi_name, module.is_main != 0, path);
    if (module.path_bytes == 0) {
        return 0;
    }
    state->found_new = true;
    if (state->link == NULL) {
        return 0;
    }
    module_entry *entry = add_entry(&module);
    if (entry == NULL) {
        return 0;
    }
    read_build_id(info, &module);
    const plan_manner as_loaded = state->is_loading ? PLAN_APPLY_LOADING : PLAN_APPLY;
    state->status =
        announce_module(state->link, &module, path,
                        sojourn_agent_face.prepare_only != 0 ? PLAN_PREPARE : as_loaded, entry);
    return state->status != SJ_OK;
}

/* Where the hooks go that a review adds: to an entry of its own, unless the first one has none. */
static module_entry *entry_for_more(const sj_link_module *module)
{
    module_entry *first = find_entry(module->bias, module->text_low);
    if (first->hooked.change_count != 0 || first->hooked.calls != NULL) {
        return add_entry(module);
    }
    sj_hooks_forget(&first->hooked);
    first->is_left_alone = false;
    return first;
}

/* What a review could not hook is asked for again in the next one: entries for it would pile up. */
static void drop_unused(module_entry *entry)
{
    uint32_t same = 0;
    if (entry == NULL || entry->hooked.change_count != 0) {
        return;
    }
    for (uint32_t i = 0; i < MAX_MODULES; i++) {
        same += modules[i].text_high != 0 && modules[i].bias == entry->bias &&
                modules[i].text_low == entry->text_low;
    }
    if (same > 1) {
        sj_hooks_forget(&entry->hooked);
        *entry = (module_entry){0};
    }
}

static sj_status review_module(sj_link *link, const sj_link_module *module, const char *path)
{
    module_entry *entry;
    SJ_TRY(ask_about(link, SJ_LINK_REVIEW, module, path));
    if (link->packet.type == SJ_LINK_PLAN) {
        entry = entry_for_more(module);
        SJ_TRY(entry != NULL ? apply_plan(link, entry, PLAN_PREPARE) : SJ_OK);
        drop_unused(entry);
    } else if (link->packet.type != SJ_LINK_SKIP) {
        return SJ_ECORRUPT;
    }
    SJ_TRY(ask_for_imports(link, module, path, PLAN_PREPARE, &entry));
    drop_unused(entry);
    return SJ_OK;
}

static int review_known(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    sweep_state *state = context;
    sj_link_module module = {.is_main = state->is_first};
    char path[MAX_PATH_BYTES];
    state->is_first = false;
    if (!read_segments(info, &module) || find_entry(module.bias, module.text_low) == NULL) {
        return 0;
    }
    module.path_bytes = read_path(info->dlpi_name, module.is_main != 0, path);
    if (module.path_bytes != 0) {
        read_build_id(info, &module);
        state->status = review_module(state->link, &module, path);
    }
    return state->status != SJ_OK;
}

/* Goes over the loader's list; entries whose `seen` stays behind `sweep` are gone. */
static sweep_state visit_modules(sj_link *link, bool is_loading)
{
    sweep_state state = {.link = link, .status = SJ_OK, .is_loading = is_loading, .is_first = true};
    sweep++;
    (void)dl_iterate_phdr(visit_module, &state);
    return state;
}

/* Forgets the modules that the last sweep did not find, and reports them while the link holds. */
static sj_status drop_unloaded(sj_link *link)
{
    sj_status status = link != NULL ? SJ_OK : SJ_ECLOSED;
    for (uint32_t i = 0; i < MAX_MODULES; i++) {
        if (modules[i].text_high == 0 || modules[i].seen == sweep) {
            continue;
        }
        const sj_link_module module = {.bias = modules[i].bias,
                                       .text_low = modules[i].text_low,
                                       .text_high = modules[i].text_high};
        sj_hooks_forget(&modules[i].hooked);
        modules[i] = (module_entry){0};
        if (status == SJ_OK) {
            memcpy(sj_link_make(link), &module, sizeof(module));
            status = sj_link_send(link, SJ_LINK_UNLOADED, sizeof(module));
        }
    }
    return status;
}

static int sum_modules(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    (void)info;
    uint64_t *sum = context;
    const struct link_map *map = loader_state != NULL ? loader_state->r_map : NULL;
    for (*sum = 0; map != NULL; map = map->l_next) {
        *sum += SJ_FACE_MODULE_SUM(map->l_addr, (uint64_t)(uintptr_t)map);
    }
    return 1;
}

/* Brackets changes of the tables that tracers read. */
static void begin_change(void)
{
    atomic_fetch_add(&sojourn_agent_face.changing, 1);
}

static void end_change(void)
{
    /* The loader's list holds still in the call. */
    (void)dl_iterate_phdr(sum_modules, &sojourn_agent_face.known_modules);
    sojourn_agent_face.loader_state = (uint64_t)(uintptr_t)loader_state;
    atomic_fetch_add(&sojourn_agent_face.changing, 1);
}

/* is_leaving is asked where nobody else can find the tables unchanged: who is in the agent for a
 * module that is being loaded while the text is restored comes too late to hook it. */
static bool is_leaving(void)
{
    return atomic_load(&sojourn_agent_face.is_leaving) != 0;
}

void sj_modules_forget_unloaded(void)
{
    begin_change();
    (void)visit_modules(NULL, false);
    (void)!drop_unloaded(NULL);
    end_change();
}

/* Unloaded modules go first: a new one may lie where they were. */
sj_status sj_modules_announce(sj_link *link, bool is_loading)
{
    begin_change();
    (void)visit_modules(NULL, false);
    sj_status status = drop_unloaded(link);
    if (status == SJ_OK && !is_leaving()) {
        status = visit_modules(link, is_loading).status;
    }
    end_change();
    return status;
}

void sj_modules_on_initialisation(void)
{
    begin_change();
    for (uint32_t i = 0; i < MAX_MODULES; i++) {
        if (sj_library_calls_is_deferred(&modules[i].hooked)) {
            if (is_leaving()) {
                sj_library_calls_release(&modules[i].hooked);
            } else {
                sj_library_calls_bind(&modules[i].hooked, NULL);
            }
        }
    }
    end_change();
}

sj_status sj_modules_review(sj_link *link)
{
    sweep_state state = {.link = link, .status = SJ_OK, .is_first = true};
    begin_change();
    (void)dl_iterate_phdr(review_known, &state);
    end_change();
    return state.status;
}

void sj_modules_show(sj_face *face)
{
    face->hooked_count = MAX_MODULES;
    face->first_hooked = (uint64_t)(uintptr_t)&modules[0].hooked;
    face->hooked_stride = sizeof(modules[0]);
    face->loader_hook = (uint64_t)(uintptr_t)&loader_hook;
}

void sj_modules_forget_all(void)
{
    begin_change();
    for (uint32_t i = 0; i < MAX_MODULES; i++) {
        sj_hooks_forget(&modules[i].hooked);
        modules[i] = (module_entry){0};
    }
    sj_hooks_forget(&loader_hook);
    atomic_fetch_add(&sojourn_agent_face.changing, 1); /* end_change takes a lock of the loader */
}

bool sj_modules_changed(void)
{
    bool changed = visit_modules(NULL, false).found_new;
    for (uint32_t i = 0; i < MAX_MODULES; i++) {
        changed = changed || (modules[i].text_high != 0 && modules[i].seen != sweep);
    }
    return changed;
}

sj_status sj_modules_follow(void)
{
    if (loader_state == NULL || loader_state->r_brk == 0) {
        return SJ_EUNSUPPORTED;
    }
    const int32_t at = sj_arch_find_return(loader_state->r_brk);
    if (at < 0) {
        return SJ_EUNSUPPORTED;
    }
    uint8_t original[SJ_RETURN_ROOM_BYTES];
    const uint64_t address = loader_state->r_brk + (uint64_t)at;
    memcpy(original, (const void *)(uintptr_t)address, sizeof(original));
    return sj_hooks_redirect(address, original, sizeof(original),
                             (uint64_t)(uintptr_t)&sj_arch_state_entry,
                             sojourn_agent_face.prepare_only != 0, &loader_hook);
}

void sj_modules_restore(void)
{
    for (uint32_t i = 0; i < MAX_MODULES; i++) {
        (void)!sj_hooks_unpatch(&modules[i].hooked);
    }
    (void)!sj_hooks_unpatch(&loader_hook);
}

void sj_modules_on_loader_event(void)
{
    if (loader_state->r_state == RT_CONSISTENT && sj_recorder_is_armed() && sj_modules_changed()) {
        sj_agent_on_modules();
    }
}
