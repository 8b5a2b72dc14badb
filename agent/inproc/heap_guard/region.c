#include "agent/inproc/heap_guard/internal.h"

#include "agent/abi/heap_entry_names.h"
#include "agent/inproc/heap_guard/delayed_free.h"
#include "agent/inproc/hooks/hooks.h"
#include "agent/inproc/hooks/module_walk.h"
#include "agent/inproc/hooks/rebind.h"
#include "agent/inproc/recorder/recorder.h"
#include "agent/inproc/recorder/sys.h"

#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/stat.h>

enum { PATH_BYTES = 4096, SLOTS_MAX = 1000000 };

sj_zombie_region *_Atomic sj_zombie_region_now;

static sj_hooked_module allocating_entries[SJ_HEAP_PARTS];
static bool was_prepared;
static bool is_detached;
static bool was_monitored; /* True if a region was published in this process or its parent. */
static sj_zombie_refusal refusal;

/* Copy of the region's list of modules, for forked children. A child cannot ask the loader, because
 * another thread of its parent may have held the loader's lock. */
static sj_zombie_module listed_modules[SJ_ZOMBIE_MODULES];
static uint32_t listed_count;

static bool join_path(char *path, const char *directory, const char *name)
{
    const size_t first = strnlen(directory, PATH_BYTES);
    const size_t second = strnlen(name, PATH_BYTES);
    if (first + 1 + second >= PATH_BYTES) {
        return false;
    }
    memcpy(path, directory, first);
    path[first] = '/';
    memcpy(path + first + 1, name, second + 1);
    return true;
}

/* Maps a file and writes its size to `*bytes`. Returns NULL if the file is smaller than `*bytes`
 * was. `kind` is MAP_SHARED or MAP_PRIVATE. */
static void *map_file(const char *path, int flags, int protection, int kind, size_t *bytes)
{
    struct stat status;
    void *mapped = NULL;
    const long file = sj_sys_open_at(AT_FDCWD, path, flags | O_CLOEXEC | O_NOFOLLOW, 0);
    if (file < 0) {
        return NULL;
    }
    if (SJ_SYS(SYS_fstat, file, &status, 0, 0, 0, 0) == 0 && status.st_size > 0 &&
        (size_t)status.st_size >= *bytes) {
        *bytes = (size_t)status.st_size;
        mapped = sj_sys_map(NULL, *bytes, protection, kind, (int)file, 0);
    }
    (void)sj_sys_close((int)file);
    return mapped == NULL || sj_sys_failed(mapped) ? NULL : mapped;
}

static sj_zombie_region *map_region(const char *runtime, const char *name)
{
    char path[PATH_BYTES];
    size_t bytes = sizeof(sj_zombie_region);
    if (!join_path(path, runtime, name)) {
        return NULL;
    }
    sj_zombie_region *region = map_file(path, O_RDWR, PROT_READ | PROT_WRITE, MAP_SHARED, &bytes);
    if (region != NULL &&
        (region->magic != SJ_ZOMBIES_MAGIC || region->version != SJ_ZOMBIES_VERSION ||
         region->settings.stack_bytes > SJ_ZOMBIE_STACK_BYTES || region->settings.slots == 0 ||
         region->settings.slots > SLOTS_MAX)) {
        (void)sj_sys_unmap(region, bytes);
        return NULL;
    }
    return region;
}

typedef struct find_bias {
    uint64_t address;
    uint64_t bias;
    uint64_t end;
    bool found;
} find_bias;

static uint64_t module_end(const struct dl_phdr_info *info)
{
    uint64_t end = 0;
    for (uint32_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        const uint64_t high = info->dlpi_addr + segment->p_vaddr + segment->p_memsz;
        end = segment->p_type == PT_LOAD && high > end ? high : end;
    }
    return end;
}

static int match_module(struct dl_phdr_info *info, size_t size, void *context)
{
    find_bias *find = context;
    (void)size;
    find->found = find->address >= info->dlpi_addr && find->address < module_end(info);
    find->bias = info->dlpi_addr;
    find->end = module_end(info);
    return find->found ? 1 : 0;
}

/* Patches the freeing or the allocating functions of a module by the plan that the region names.
 * Returns true without a change if there is no plan, or if they are patched already. */
static bool patch_half(const sj_entries_context *context, sj_zombie_half half, uint64_t bias,
                       bool prepare_only, sj_hooked_module *module)
{
    static const uint32_t functions[SJ_HEAP_HALVES] = {SJ_HOOK_HEAP_ALLOCATING,
                                                       SJ_HOOK_HEAP_FREEING};
    const char *path = context->region->plans[context->part].paths[half];
    size_t bytes = 0;
    sj_hooks_report report = {0};
    const sj_hooks_entries heap_entries = {.context = (void *)(uintptr_t)context,
                                           .emit = sj_entries_emit,
                                           .function = functions[half],
                                           .prepare_only = prepare_only};
    if (path[0] == '\0' || module->change_count != 0) {
        return true;
    }
    void *plan = map_file(path, O_RDONLY, PROT_READ, MAP_PRIVATE, &bytes);
    if (plan == NULL) {
        return false;
    }
    const sj_status status =
        sj_hooks_apply_entries(plan, bytes, bias, &heap_entries, module, &report);
    (void)sj_sys_unmap(plan, bytes);
    return status == SJ_OK && report.hooked != 0 && report.failed == 0;
}

static uint8_t family_of_entry(uint32_t entry)
{
    if ((entry >= SJ_ENTRY_NEW && entry <= SJ_ENTRY_NEW_NOTHROW) ||
        (entry >= SJ_ENTRY_DELETE && entry < SJ_ENTRY_DELETE_ARRAY)) {
        return SJ_FAMILY_NEW;
    }
    if ((entry >= SJ_ENTRY_NEW_ARRAY && entry <= SJ_ENTRY_NEW_ARRAY_NOTHROW) ||
        (entry >= SJ_ENTRY_DELETE_ARRAY && entry < SJ_ENTRY_SIGACTION)) {
        return SJ_FAMILY_NEW_ARRAY;
    }
    return entry >= SJ_ENTRY_DALLOCX && entry <= SJ_ENTRY_SALLOCX ? SJ_FAMILY_ANY
                                                                  : SJ_FAMILY_MALLOC;
}

/* Sets the families of each entry. Entries at the same address get the families of all their names,
 * because it is not known by which name the program calls them. */
static void fill_families(sj_residue *residue, const sj_zombie_region *region, bool are_known)
{
    for (uint32_t entry = 0; entry < SJ_HEAP_ENTRIES; entry++) {
        residue->families[entry] = are_known ? family_of_entry(entry) : SJ_FAMILY_ANY;
        for (uint32_t other = 0; other < SJ_HEAP_ENTRIES; other++) {
            if (region->heap_entries[entry] != 0 &&
                region->heap_entries[other] == region->heap_entries[entry] &&
                region->parts[other] == region->parts[entry]) {
                residue->families[entry] |= family_of_entry(other);
            }
        }
    }
}

/* True if all operators new and delete that the program uses lie in this module. */
static bool has_all_operators(const find_bias *module)
{
    for (uint32_t entry = 0; entry < SJ_ENTRY_SIGACTION; entry++) {
        const bool is_operator =
            (entry >= SJ_ENTRY_NEW && entry < SJ_ENTRY_FREE) || entry >= SJ_ENTRY_DELETE;
        const uint64_t address = is_operator ? sj_rebind_find(sj_heap_entry_names[entry]) : 0;
        if (address != 0 && (address < module->bias || address >= module->end)) {
            return false;
        }
    }
    return true;
}

static void set_agent_handlers(sj_residue *residue)
{
    for (uint32_t entry = SJ_ENTRY_FREE; entry < SJ_ENTRY_SIGACTION; entry++) {
        residue->block_handlers[entry] = (uint64_t)(uintptr_t)sj_free_handler((sj_heap_entry)entry);
    }
    residue->block_handlers[SJ_ENTRY_SIGACTION] = (uint64_t)(uintptr_t)sj_faults_sigaction;
    residue->block_handlers[SJ_ENTRY_SIGMASK] = (uint64_t)(uintptr_t)sj_faults_sigmask;
    for (uint32_t entry = SJ_ENTRY_READ; entry < SJ_HEAP_ENTRIES; entry++) {
        residue->block_handlers[entry] = sj_buffer_call((sj_heap_entry)entry);
    }
}

/* Creates the residue, or uses the residue that an earlier agent left. */
static sj_zombie_refusal create_or_adopt_residue(const sj_zombie_region *region)
{
    sj_residue_now = sj_residue_find();
    if (sj_residue_now != NULL) {
        if (sj_residue_now->shared.version != SJ_HEAP_RESIDUE_VERSION) {
            return SJ_ZOMBIE_OTHER_AGENT;
        }
        sj_pool_resume();
        return SJ_ZOMBIE_MONITORED;
    }
    sj_residue_now = sj_residue_new();
    if (sj_residue_now != NULL) {
        sj_residue_now->has_counting = region->settings.counts;
    }
    return sj_residue_now != NULL && sj_pool_init(&region->settings) ? SJ_ZOMBIE_MONITORED
                                                                     : SJ_ZOMBIE_NO_MEMORY;
}

typedef struct heap_modules {
    find_bias parts[SJ_HEAP_PARTS]; /* The entries of a part are patched only if it is `found`. */
} heap_modules;

/* Finds the modules for which plans exist. Returns false if the program uses another allocator. */
static bool find_modules(const sj_zombie_region *region, heap_modules *modules)
{
    for (uint32_t part = 0; part < SJ_HEAP_PARTS; part++) {
        const sj_heap_plan *plan = &region->plans[part];
        find_bias *find = &modules->parts[part];
        if (plan->anchor_name[0] == '\0') {
            continue;
        }
        find->address = sj_rebind_find(plan->anchor_name);
        (void)sj_module_walk(match_module, find);
        find->found = find->found && find->address - find->bias == plan->anchor_offset;
        if (!find->found && part != SJ_HEAP_OPERATORS) {
            return false;
        }
    }
    find_bias *operators = &modules->parts[SJ_HEAP_OPERATORS];
    operators->found = operators->found && has_all_operators(operators);
    return true;
}

/* Decides the families of all entries. They are known only if one module defines all of the
 * program's operators and is patched. */
static void find_families(const sj_zombie_region *region, const heap_modules *modules)
{
    sj_residue *residue = sj_residue_now;
    const bool has_own =
        region->heap_entries[SJ_ENTRY_NEW] != 0 && region->parts[SJ_ENTRY_NEW] == SJ_HEAP_ALLOCATOR;
    const find_bias *module = &modules->parts[has_own ? SJ_HEAP_ALLOCATOR : SJ_HEAP_OPERATORS];
    const bool are_known = module->found && has_all_operators(module);
    fill_families(residue, region, are_known);
    residue->operators_low = are_known ? module->bias : 0;
    residue->operators_high = are_known ? module->end : 0;
}

/* Patches all entries, or prepares their patches. Blocks are guarded only once `is_whole` is set,
 * when all patches have been written. */
static bool patch_all(sj_zombie_region *region, const heap_modules *modules, bool prepare_only)
{
    sj_hooked_module *freeing = sj_residue_now->shared.freeing_modules;
    find_families(region, modules);
    set_agent_handlers(sj_residue_now);
    for (uint32_t step = 0; step < SJ_HEAP_HALVES * SJ_HEAP_PARTS; step++) {
        const bool is_freeing = step < SJ_HEAP_PARTS; /* Freeing entries come first. */
        const sj_entries_context context = {.region = region,
                                            .part = (sj_heap_part)(step % SJ_HEAP_PARTS)};
        const find_bias *module = &modules->parts[context.part];
        if (module->found &&
            !patch_half(&context, is_freeing ? SJ_HEAP_FREEING : SJ_HEAP_ALLOCATING, module->bias,
                        prepare_only,
                        is_freeing ? &freeing[context.part] : &allocating_entries[context.part])) {
            return false;
        }
    }
    atomic_store(&sj_residue_now->shared.is_whole, prepare_only ? 0 : 1);
    return true;
}

static void unpatch_all(void)
{
    for (uint32_t part = 0; part < SJ_HEAP_PARTS; part++) {
        (void)!sj_hooks_unpatch(&allocating_entries[part]);
        if (atomic_load(&sj_residue_now->shared.live) == 0) {
            (void)!sj_hooks_unpatch(&sj_residue_now->shared.freeing_modules[part]);
        }
    }
}

static sj_zombie_refusal patch_heap(sj_zombie_region *region, bool prepare_only)
{
    heap_modules modules = {0};
    if (!sj_entries_supported()) {
        return SJ_ZOMBIE_MACHINE;
    }
    if (region->plans[SJ_HEAP_ALLOCATOR].anchor_name[0] == '\0') {
        return region->why_not != SJ_ZOMBIE_MONITORED ? (sj_zombie_refusal)region->why_not
                                                      : SJ_ZOMBIE_NO_PLAN;
    }
    if (!find_modules(region, &modules)) {
        return SJ_ZOMBIE_OTHER_MALLOC;
    }
    const sj_zombie_refusal opened = create_or_adopt_residue(region);
    if (opened != SJ_ZOMBIE_MONITORED) {
        return opened;
    }
    sj_residue_now->new_block = modules.parts[SJ_HEAP_ALLOCATOR].address;
    if (patch_all(region, &modules, prepare_only)) {
        return SJ_ZOMBIE_MONITORED;
    }
    unpatch_all(); /* A part of the patches alone would be wrong. */
    sj_residue_point_at_own_code(sj_residue_now);
    return SJ_ZOMBIE_CODE_DIFFERS;
}

static sj_zombie_refusal start_counting(const sj_zombie_region *region)
{
    if (refusal != SJ_ZOMBIE_MONITORED) {
        return refusal;
    }
    if (!sj_counting_is_possible(region)) {
        return SJ_ZOMBIE_NO_SIZES;
    }
    if (sj_residue_now->has_counting == 0) {
        return SJ_ZOMBIE_NOT_COUNTING;
    }
    sj_counting_begin(region);
    return SJ_ZOMBIE_MONITORED;
}

/* Starts counting and delaying, as the settings say, if the entries could be patched. */
static void apply_settings(sj_zombie_region *region)
{
    atomic_store(&region->refusal, refusal);
    if (was_prepared && region->settings.counts != 0) {
        atomic_store(&region->counting_refusal, start_counting(region));
    }
    if (was_prepared && refusal == SJ_ZOMBIE_MONITORED) {
        sj_delayed_free_begin(region);
    }
}

/* Patches the entries at the first call whose settings need them. Then applies the settings. */
static void patch_once(sj_zombie_region *region, bool prepare_only)
{
    if (!was_prepared && (region->settings.one_in != 0 || region->settings.counts != 0)) {
        refusal = patch_heap(region, prepare_only);
        was_prepared = true;
    }
    apply_settings(region);
}

static void list_module(sj_zombie_region *region, const sj_zombie_module *module)
{
    const uint32_t count = atomic_load(&region->module_count);
    if (count < SJ_ZOMBIE_MODULES) {
        region->modules[count] = *module;
        atomic_store_explicit(&region->module_count, count + 1, memory_order_release);
    }
}

/* Publishes the region. Unmaps it and returns false if neither heap nor objects are monitored. */
static bool publish_region(sj_zombie_region *region)
{
    /* The heap may be monitored although its counting was refused. */
    if (refusal != SJ_ZOMBIE_MONITORED && region->settings.objects.is_on == 0) {
        (void)sj_sys_unmap(region, sizeof(*region));
        return false;
    }
    for (uint32_t i = 0; i < listed_count; i++) {
        list_module(region, &listed_modules[i]);
    }
    atomic_store(&sj_zombie_region_now, region);
    was_monitored = true;
    return true;
}

bool sj_heap_guard_prepare(const char *runtime, const char *name, bool prepare_only)
{
    sj_zombie_region *region = atomic_load(&sj_zombie_region_now);
    if (is_detached) {
        return false;
    }
    sj_faults_adopt();
    if (region != NULL) {
        patch_once(region, prepare_only);
        return true;
    }
    region = map_region(runtime, name);
    if (region == NULL) {
        return false;
    }
    patch_once(region, prepare_only);
    if (!publish_region(region)) {
        return false;
    }
    sj_heap_guard_list_modules();
    return true;
}

void sj_heap_guard_rejoin(const char *runtime, const char *name)
{
    sj_zombie_region *region =
        !is_detached && (was_prepared || was_monitored) ? map_region(runtime, name) : NULL;
    if (region != NULL) {
        apply_settings(region);
        (void)!publish_region(region);
    }
}

void sj_heap_guard_get_tables(uint64_t *heap_allocating, uint64_t *heap_residue)
{
    const bool is_patched = was_prepared && refusal == SJ_ZOMBIE_MONITORED;
    *heap_allocating = is_patched ? (uint64_t)(uintptr_t)allocating_entries : 0;
    *heap_residue = is_patched ? (uint64_t)(uintptr_t)sj_residue_now : 0;
}

void sj_heap_guard_shrink(void)
{
    sj_zombie_region *region = atomic_load(&sj_zombie_region_now);
    if (region == NULL) {
        return;
    }
    atomic_store(&region->shrinks_done, atomic_load(&region->shrinks_wanted));
    if (was_prepared && refusal == SJ_ZOMBIE_MONITORED) {
        sj_pool_shrink();
        sj_delayed_free_shrink();
    }
}

bool sj_heap_guard_delays_frees(void)
{
    return sj_delayed_free_is_on();
}

void sj_heap_guard_end_delays(void)
{
    sj_delayed_free_end();
}

void sj_heap_guard_check_delayed(void)
{
    sj_delayed_free_check();
}

void sj_heap_guard_detach(void)
{
    if (!was_prepared || refusal != SJ_ZOMBIE_MONITORED || is_detached) {
        return;
    }
    is_detached = true;
    sj_heap_guard_after_fork();
    sj_delayed_free_deinit();
    sj_counting_end();
    atomic_store(&sj_residue_now->shared.is_whole, 0);
    sj_faults_end();
    sj_pool_detach();
    sj_residue_point_at_own_code(sj_residue_now);
}

void sj_heap_guard_release_code(void)
{
    is_detached = true;
    sj_heap_guard_after_fork();
    for (uint32_t part = 0; part < SJ_HEAP_PARTS; part++) {
        sj_hooks_forget(&allocating_entries[part]);
    }
}

static bool is_listed(uint64_t bias, const char *path)
{
    for (uint32_t i = listed_count; i-- > 0;) {
        if (listed_modules[i].bias == bias) {
            return strncmp(listed_modules[i].path, path, SJ_ZOMBIE_PATH_BYTES) == 0;
        }
    }
    return false;
}

static int add_module(struct dl_phdr_info *info, size_t size, void *context)
{
    char path[SJ_ZOMBIE_PATH_BYTES] = "";
    (void)size;
    if (info->dlpi_name == NULL || info->dlpi_name[0] == '\0') {
        (void)SJ_SYS(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", path, sizeof(path) - 1, 0, 0);
    } else if (strnlen(info->dlpi_name, sizeof(path)) < sizeof(path)) {
        memcpy(path, info->dlpi_name, strlen(info->dlpi_name) + 1);
    }
    if (path[0] != '/' || listed_count == SJ_ZOMBIE_MODULES || is_listed(info->dlpi_addr, path)) {
        return 0;
    }
    sj_zombie_module *module = &listed_modules[listed_count];
    module->bias = info->dlpi_addr;
    module->text_high = module_end(info);
    memcpy(module->path, path, sizeof(path));
    listed_count++;
    list_module(context, module);
    return 0;
}

void sj_heap_guard_list_modules(void)
{
    sj_zombie_region *region = atomic_load(&sj_zombie_region_now);
    if (region != NULL) {
        (void)sj_module_walk(add_module, region);
    }
}

void sj_heap_guard_after_fork(void)
{
    sj_zombie_region *region = atomic_exchange(&sj_zombie_region_now, NULL);
    sj_delayed_free_after_fork();
    sj_thread_after_fork();
    if (region != NULL && sj_recorder_may_call()) {
        (void)sj_sys_unmap(region, sizeof(*region));
    }
}
