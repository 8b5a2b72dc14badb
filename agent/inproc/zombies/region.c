#include "agent/inproc/zombies/internal.h"

#include "agent/inproc/hooks/hooks.h"
#include "agent/inproc/hooks/rebind.h"
#include "agent/inproc/recorder/sys.h"

#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/stat.h>

enum { PATH_BYTES = 4096, SLOTS_MAX = 28000 };

sj_zombie_region *_Atomic sj_zombie_region_now;

static sj_hooked_module hooked;
static bool was_prepared;

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

static sj_zombie_refusal patch_entries(sj_zombie_region *region)
{
    size_t bytes = 0;
    find_bias find = {.address = sj_rebind_find("malloc")};
    sj_hooks_report report = {0};
    const sj_hooks_heads heads = {.context = region, .emit = sj_heads_emit};
    if (region->plan_path[0] == '\0') {
        return SJ_ZOMBIE_NO_PLAN;
    }
    (void)dl_iterate_phdr(match_module, &find);
    if (!find.found || find.address - find.bias != region->libc_offset) {
        return SJ_ZOMBIE_OTHER_MALLOC;
    }
    if (!sj_pool_open(&region->settings)) {
        return SJ_ZOMBIE_NO_MEMORY;
    }
    void *plan = map_file(region->plan_path, O_RDONLY, PROT_READ, MAP_PRIVATE, &bytes);
    if (plan == NULL) {
        return SJ_ZOMBIE_NO_PLAN;
    }
    const sj_status status = sj_hooks_apply_heads(plan, bytes, find.bias, &heads, &hooked, &report);
    (void)sj_sys_unmap(plan, bytes);
    if (status == SJ_OK && report.hooked == SJ_HEADS && report.failed == 0) {
        return sj_faults_begin() ? SJ_ZOMBIE_MONITORED : SJ_ZOMBIE_NO_HANDLER;
    }
    if (status == SJ_OK) { /* all or nothing */
        (void)!sj_hooks_unpatch(&hooked);
    }
    return SJ_ZOMBIE_CODE_DIFFERS;
}

bool sj_zombies_prepare(const char *runtime, const char *name)
{
    if (atomic_load(&sj_zombie_region_now) != NULL) {
        return true;
    }
    sj_zombie_region *region = map_region(runtime, name);
    if (region == NULL) {
        return false;
    }
    static sj_zombie_refusal refusal;
    if (!was_prepared) {
        refusal = sj_heads_supported() ? patch_entries(region) : SJ_ZOMBIE_MACHINE;
        was_prepared = true;
    }
    atomic_store(&region->refusal, refusal);
    if (refusal != SJ_ZOMBIE_MONITORED) {
        (void)sj_sys_unmap(region, sizeof(*region));
        return false;
    }
    atomic_store(&sj_zombie_region_now, region);
    sj_zombies_note_modules();
    return true;
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
    if (region != NULL) {
        (void)sj_sys_unmap(region, sizeof(*region));
    }
}
