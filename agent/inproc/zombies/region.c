#include "agent/inproc/zombies/internal.h"

#include "agent/inproc/hooks/hooks.h"
#include "agent/inproc/hooks/rebind.h"
#include "agent/inproc/recorder/recorder.h"
#include "agent/inproc/recorder/sys.h"

#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/stat.h>

enum { PATH_BYTES = 4096, SLOTS_MAX = 28000 };

sj_zombie_region *_Atomic sj_zombie_region_now;

static sj_hooked_module takers;
static bool was_prepared;
static bool has_left;
static sj_zombie_refusal refusal;

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

/* `*bytes` 0: any size; else the size that it must have at least. */
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
    bool found;
} find_bias;

static uint64_t end_of(const struct dl_phdr_info *info)
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
    find->found = find->address >= info->dlpi_addr && find->address < end_of(info);
    find->bias = info->dlpi_addr;
    return find->found ? 1 : 0;
}

/* Applies the plan of one half of the entries. What is not patched at all may be missing there. */
static bool patch_half(sj_zombie_region *region, sj_zombie_half half, uint64_t bias,
                       bool prepare_only, sj_hooked_module *module)
{
    static const uint32_t functions[SJ_HEAP_HALVES] = {SJ_HOOK_HEAP_TAKERS, SJ_HOOK_HEAP_GIVERS};
    size_t bytes = 0;
    sj_hooks_report report = {0};
    const sj_hooks_heads heads = {.context = region,
                                  .emit = sj_heads_emit,
                                  .function = functions[half],
                                  .prepare_only = prepare_only};
    void *plan = map_file(region->plan_paths[half], O_RDONLY, PROT_READ, MAP_PRIVATE, &bytes);
    if (plan == NULL) {
        return false;
    }
    const sj_status status = sj_hooks_apply_heads(plan, bytes, bias, &heads, module, &report);
    (void)sj_sys_unmap(plan, bytes);
    return status == SJ_OK && report.hooked != 0 && report.failed == 0;
}

static void lead_to_agent(sj_custody *custody)
{
    custody->goes_to[SJ_HEAD_FREE] = (uint64_t)(uintptr_t)sj_allocation_free;
    custody->goes_to[SJ_HEAD_REALLOC] = (uint64_t)(uintptr_t)sj_allocation_resize;
    custody->goes_to[SJ_HEAD_USABLE_SIZE] = (uint64_t)(uintptr_t)sj_allocation_size;
    custody->goes_to[SJ_HEAD_SIGACTION] = (uint64_t)(uintptr_t)sj_faults_sigaction;
    custody->goes_to[SJ_HEAD_SIGMASK] = (uint64_t)(uintptr_t)sj_faults_sigmask;
    for (uint32_t head = SJ_HEAD_READ; head < SJ_HEADS; head++) {
        custody->goes_to[head] = sj_buffer_call((sj_zombie_head)head);
    }
}

/* Makes the custody, or goes on with the one that an agent before left. */
static sj_zombie_refusal open_custody(const sj_zombie_region *region)
{
    sj_custody_now = sj_custody_find();
    if (sj_custody_now != NULL) {
        if (sj_custody_now->shared.version != SJ_HEAP_CUSTODY_VERSION) {
            return SJ_ZOMBIE_OTHER_AGENT;
        }
        sj_pool_go_on();
        return SJ_ZOMBIE_MONITORED;
    }
    sj_custody_now = sj_custody_make();
    return sj_custody_now != NULL && sj_pool_open(&region->settings) ? SJ_ZOMBIE_MONITORED
                                                                     : SJ_ZOMBIE_NO_MEMORY;
}

/* Blocks are given out when all entries are written: `is_whole`. */
static bool patch_both(sj_zombie_region *region, uint64_t bias, bool prepare_only)
{
    sj_hooked_module *givers = &sj_custody_now->shared.givers;
    lead_to_agent(sj_custody_now);
    if (givers->change_count == 0 &&
        !patch_half(region, SJ_HEAP_GIVERS, bias, prepare_only, givers)) {
        return false;
    }
    if (!patch_half(region, SJ_HEAP_TAKERS, bias, prepare_only, &takers)) {
        return false;
    }
    atomic_store(&sj_custody_now->shared.is_whole, prepare_only ? 0 : 1);
    return true;
}

static sj_zombie_refusal enter_heap(sj_zombie_region *region, bool prepare_only)
{
    find_bias find = {.address = sj_rebind_find("malloc")};
    if (!sj_heads_supported()) {
        return SJ_ZOMBIE_MACHINE;
    }
    if (region->plan_paths[SJ_HEAP_TAKERS][0] == '\0') {
        return SJ_ZOMBIE_NO_PLAN;
    }
    (void)dl_iterate_phdr(match_module, &find);
    if (!find.found || find.address - find.bias != region->libc_offset) {
        return SJ_ZOMBIE_OTHER_MALLOC;
    }
    const sj_zombie_refusal opened = open_custody(region);
    if (opened != SJ_ZOMBIE_MONITORED) {
        return opened;
    }
    sj_custody_now->new_block = find.address;
    if (patch_both(region, find.bias, prepare_only)) {
        return SJ_ZOMBIE_MONITORED;
    }
    (void)!sj_hooks_unpatch(&takers); /* all or nothing */
    if (atomic_load(&sj_custody_now->shared.live) == 0) {
        (void)!sj_hooks_unpatch(&sj_custody_now->shared.givers);
    }
    sj_custody_take_over(sj_custody_now);
    return SJ_ZOMBIE_CODE_DIFFERS;
}

/* What the settings ask of the heap and has not been tried. */
static void try_heap(sj_zombie_region *region, bool prepare_only)
{
    if (!was_prepared && region->settings.one_in != 0) {
        refusal = enter_heap(region, prepare_only);
        was_prepared = true;
    }
    atomic_store(&region->refusal, refusal);
}

bool sj_zombies_prepare(const char *runtime, const char *name, bool prepare_only)
{
    sj_zombie_region *region = atomic_load(&sj_zombie_region_now);
    if (has_left) {
        return false;
    }
    if (region != NULL) {
        try_heap(region, prepare_only);
        return true;
    }
    region = map_region(runtime, name);
    if (region == NULL) {
        return false;
    }
    try_heap(region, prepare_only);
    if (refusal != SJ_ZOMBIE_MONITORED && region->settings.objects.is_on == 0) {
        (void)sj_sys_unmap(region, sizeof(*region));
        return false;
    }
    atomic_store(&sj_zombie_region_now, region);
    sj_zombies_note_modules();
    return true;
}

void sj_zombies_get_tables(uint64_t *heap_takers, uint64_t *heap_custody)
{
    const bool is_patched = was_prepared && refusal == SJ_ZOMBIE_MONITORED;
    *heap_takers = is_patched ? (uint64_t)(uintptr_t)&takers : 0;
    *heap_custody = is_patched ? (uint64_t)(uintptr_t)sj_custody_now : 0;
}

void sj_zombies_shrink(void)
{
    sj_zombie_region *region = atomic_load(&sj_zombie_region_now);
    if (region == NULL) {
        return;
    }
    atomic_store(&region->shrinks_done, atomic_load(&region->shrinks_wanted));
    if (was_prepared && refusal == SJ_ZOMBIE_MONITORED) {
        sj_pool_shrink();
    }
}

void sj_zombies_leave(void)
{
    if (!was_prepared || refusal != SJ_ZOMBIE_MONITORED || has_left) {
        return;
    }
    has_left = true;
    sj_zombies_after_fork();
    atomic_store(&sj_custody_now->shared.is_whole, 0);
    sj_faults_end();
    sj_pool_leave();
    sj_custody_take_over(sj_custody_now);
}

void sj_zombies_forget(void)
{
    has_left = true;
    sj_zombies_after_fork();
    sj_hooks_forget(&takers);
}

static bool is_noted(const sj_zombie_region *region, uint64_t bias, const char *path)
{
    const uint32_t count = atomic_load(&region->module_count);
    for (uint32_t i = count; i-- > 0;) {
        if (region->modules[i].bias == bias) {
            return strncmp(region->modules[i].path, path, SJ_ZOMBIE_PATH_BYTES) == 0;
        }
    }
    return false;
}

static int note_module(struct dl_phdr_info *info, size_t size, void *context)
{
    sj_zombie_region *region = context;
    char path[SJ_ZOMBIE_PATH_BYTES] = "";
    const uint32_t count = atomic_load(&region->module_count);
    (void)size;
    if (info->dlpi_name == NULL || info->dlpi_name[0] == '\0') {
        (void)SJ_SYS(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", path, sizeof(path) - 1, 0, 0);
    } else if (strnlen(info->dlpi_name, sizeof(path)) < sizeof(path)) {
        memcpy(path, info->dlpi_name, strlen(info->dlpi_name) + 1);
    }
    if (path[0] != '/' || count == SJ_ZOMBIE_MODULES || is_noted(region, info->dlpi_addr, path)) {
        return 0;
    }
    sj_zombie_module *module = &region->modules[count];
    module->bias = info->dlpi_addr;
    module->text_high = end_of(info);
    memcpy(module->path, path, sizeof(path));
    atomic_store_explicit(&region->module_count, count + 1, memory_order_release);
    return 0;
}

void sj_zombies_note_modules(void)
{
    sj_zombie_region *region = atomic_load(&sj_zombie_region_now);
    if (region != NULL) {
        (void)dl_iterate_phdr(note_module, region);
    }
}

void sj_zombies_after_fork(void)
{
    sj_zombie_region *region = atomic_exchange(&sj_zombie_region_now, NULL);
    if (region != NULL && sj_recorder_may_call()) {
        (void)sj_sys_unmap(region, sizeof(*region));
    }
}
