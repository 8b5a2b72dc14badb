/* Design notes
 *
 * If a program runs repeatedly, each process makes the same stubs from the same plan. Stubs refer
 * to the module by relative distances. The stub area lies at the same distance from the module if
 * the address space has the same layout. Only the trampolines contain absolute addresses: addresses
 * of the agent's code. So the second process of a session writes its area and its changes into a
 * file beside the plan. Later processes map the file, write the trampolines again, compare the text
 * and change it. They do not read the plan and do not generate stubs.
 *
 * The file contains code. So it must belong to this user, and no other user may be able to write
 * it. A process writes it under a temporary name and renames it, so it is always complete. */
#include "agent/inproc/hooks/ready.h"

#include "agent/abi/page.h"
#include "agent/inproc/hooks/debugger.h"
#include "agent/inproc/hooks/internal.h"
#include "agent/inproc/hooks/stub_areas.h"
#include "agent/inproc/hooks/stub_notes.h"
#include "agent/inproc/recorder/changes.h"
#include "agent/inproc/recorder/recorder.h"
#include "agent/inproc/recorder/sys.h"

#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum {
    PATH_BYTES = 4096 + 16,
    OTHERS_WRITE = 022,
    /* Larger areas use huge pages (near.c), which a mapped file cannot have. */
    LARGEST_AREA = 1 << 21,
    CHANGES_PER_PAGE = 4
};

#define READY_MAGIC UINT64_C(0x3159444145524a53) /* "SJREADY1" */

/* Start of a file of stubs. An array of sj_hook_change follows, and the stub area begins at the
 * next page. */
typedef struct ready_header {
    uint64_t magic;
    sj_ready_plan plan;
    uint64_t agent; /* hash of the agent's build, see hash_agent */
    uint64_t bias;  /* bias in the process that made the file */
    uint64_t stubs; /* address of the stubs in that process */
    uint64_t stubs_bytes;
    uint64_t text_low, text_high; /* the plan's text, as offsets from the bias */
    uint32_t first_function;
    uint32_t change_count;
    uint32_t hooked;
    uint32_t reserved;
} ready_header;

/* Returns a hash that differs between builds of the agent whose stubs or changes differ. It covers
 * distances between functions, the size of a change, the offset of a thread's data, whether probes
 * write short records, whether the fork page has its fixed address, and the page size. */
static uint64_t hash_agent(void)
{
    const uint64_t here = (uint64_t)(uintptr_t)&sj_ready_apply;
    const uint64_t parts[] = {(uint64_t)(uintptr_t)&sj_arch_slow_entry - here,
                              (uint64_t)(uintptr_t)&sj_hooks_apply - here,
                              (uint64_t)(uintptr_t)&sj_code_emit_shared - here,
                              sizeof(sj_hook_change),
                              sj_arch_thread_offset(),
                              sj_recorder_counts_calls(),
                              (uint64_t)(uintptr_t)sj_recorder_usable_mask == SJ_FORK_PAGE_ADDRESS,
                              sj_page_bytes()};
    uint64_t sum = 0;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        sum = (sum ^ parts[i]) * UINT64_C(0x9e3779b97f4a7c15);
    }
    return sum;
}

static sj_ready_plan plan_identity(const struct stat *file)
{
    return (sj_ready_plan){.device = file->st_dev,
                           .inode = file->st_ino,
                           .bytes = (uint64_t)file->st_size,
                           .changed_s = (uint64_t)file->st_ctim.tv_sec,
                           .changed_ns = (uint64_t)file->st_ctim.tv_nsec};
}

bool sj_ready_identify(int file, sj_ready_plan *plan)
{
    struct stat status;
    if (SJ_SYS(SYS_fstat, file, &status, 0, 0, 0, 0) != 0) {
        return false;
    }
    *plan = plan_identity(&status);
    return true;
}

static ready_header make_key(const sj_ready_plan *plan, uint32_t first_function)
{
    return (ready_header){.magic = READY_MAGIC,
                          .plan = *plan,
                          .agent = hash_agent(),
                          .first_function = first_function};
}

/* Makes the key of the plan file that is at `plan_path` now. Does not read the file. Returns false
 * if there is none. */
static bool find_key(const char *plan_path, uint32_t first_function, ready_header *key)
{
    struct stat status;
    if (SJ_SYS(SYS_newfstatat, AT_FDCWD, plan_path, &status, 0, 0, 0) != 0) {
        return false;
    }
    const sj_ready_plan plan = plan_identity(&status);
    *key = make_key(&plan, first_function);
    return true;
}

/* Paths of the files beside a plan. They are static because only one thread applies plans. */
static char stubs_path[PATH_BYTES];
static char temporary_path[PATH_BYTES];

static bool append_suffix(const char *plan_path, const char *suffix, char path[PATH_BYTES])
{
    const size_t used = strlen(plan_path);
    const size_t suffix_bytes = strlen(suffix) + 1;
    if (used + suffix_bytes > PATH_BYTES) {
        return false;
    }
    memcpy(path, plan_path, used);
    memcpy(path + used, suffix, suffix_bytes);
    return true;
}

static uint64_t area_offset(const ready_header *header)
{
    const uint64_t end = sizeof(*header) + header->change_count * sizeof(sj_hook_change);
    return sj_page_round_up(end);
}

static bool is_trusted(const struct stat *file)
{
    return S_ISREG(file->st_mode) && (file->st_mode & OTHERS_WRITE) == 0 &&
           file->st_uid == (uint32_t)SJ_SYS(SYS_geteuid, 0, 0, 0, 0, 0, 0);
}

/* An open file of stubs, mapped whole. */
typedef struct ready_file {
    int descriptor; /* -1: none */
    uint64_t mapped_bytes;
    const ready_header *header;
} ready_file;

static void close_file(ready_file *file)
{
    if (file->header != NULL) {
        (void)sj_sys_unmap((void *)(uintptr_t)file->header, file->mapped_bytes);
    }
    if (file->descriptor >= 0) {
        (void)sj_sys_close(file->descriptor);
    }
}

/* True if the stubs were made from the plan and by the agent build of `key`, and if the file's
 * sizes are consistent. */
static bool is_made_for(const ready_header *header, const ready_header *key, uint64_t file_bytes)
{
    const size_t key_bytes = offsetof(ready_header, bias);
    return memcmp(header, key, key_bytes) == 0 && header->first_function == key->first_function &&
           header->change_count <= file_bytes / sizeof(sj_hook_change) &&
           header->stubs_bytes <= LARGEST_AREA && header->stubs_bytes % sj_page_bytes() == 0 &&
           header->stubs_bytes != 0 && area_offset(header) + header->stubs_bytes == file_bytes;
}

/* Opens and maps the file of stubs beside the plan file. Returns false if it is missing, not
 * trusted or not made for `key`. The caller closes it in any case. */
static bool open_file(const char *plan_path, const ready_header *key, ready_file *file)
{
    struct stat status;
    if (!append_suffix(plan_path, ".stubs", stubs_path)) {
        return false;
    }
    file->descriptor =
        (int)sj_sys_open_at(AT_FDCWD, stubs_path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW, 0);
    if (file->descriptor < 0 || SJ_SYS(SYS_fstat, file->descriptor, &status, 0, 0, 0, 0) != 0 ||
        !is_trusted(&status) || (uint64_t)status.st_size < sizeof(ready_header)) {
        return false;
    }
    const uint64_t bytes = (uint64_t)status.st_size;
    const ready_header *header =
        sj_sys_map(NULL, bytes, PROT_READ, MAP_PRIVATE, file->descriptor, 0);
    if (sj_sys_failed(header)) {
        return false;
    }
    file->header = header;
    file->mapped_bytes = bytes;
    return is_made_for(header, key, bytes);
}

static void write_trampolines(uint8_t *area)
{
    sj_code_emitter emitter = {.at = (uint64_t)(uintptr_t)area};
    sj_stubs_emit_trampolines(&emitter);
}

/* Maps the area at the same distance from the module as in the process that made it. */
static bool map_area(const ready_file *file, uint64_t bias, sj_hooked_module *module)
{
    const ready_header *header = file->header;
    const uint64_t place = header->stubs - header->bias + bias;
    uint8_t *area =
        sj_sys_map((void *)(uintptr_t)place, header->stubs_bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_FIXED_NOREPLACE, file->descriptor, area_offset(header));
    if (sj_sys_failed(area)) {
        return false;
    }
    module->stubs = area;
    module->stubs_bytes = header->stubs_bytes;
    if ((uint64_t)(uintptr_t)area != place) {
        return false;
    }
    write_trampolines(area);
    sj_stub_notes_write_unwind(area);
    sj_stub_areas_add(area, header->stubs_bytes);
    sj_debugger_add(area);
    sj_arch_sync_code(place, header->stubs_bytes);
    return sj_sys_protect(area, header->stubs_bytes, PROT_READ | PROT_EXEC) == 0;
}

/* Copies the changes of the file, with the addresses that they have in this process. Returns false
 * if one is outside of the text. */
static bool copy_changes(const ready_header *header, const sj_ready_place *place,
                         sj_hooked_module *module)
{
    const sj_hook_change *saved = (const sj_hook_change *)(const void *)(header + 1);
    module->changes_bytes = area_offset(header);
    module->changes = sj_sys_allocate(module->changes_bytes);
    if (module->changes == NULL) {
        return false;
    }
    sj_sys_populate(module->changes, module->changes_bytes);
    for (uint32_t i = 0; i < header->change_count; i++) {
        sj_hook_change *change = &module->changes[i];
        *change = saved[i];
        change->address = saved[i].address - header->bias + place->bias;
        change->written = 0;
        if (change->window > SJ_PATCH_MAX_BYTES || change->bytes > change->window ||
            change->address < place->text_low || change->address > place->text_high ||
            place->text_high - change->address < change->window) {
            return false;
        }
    }
    module->change_count = header->change_count;
    return true;
}

static bool is_text_as_planned(const sj_hooked_module *module)
{
    bool same = true;
    for (uint32_t i = 0; i < module->change_count && same; i++) {
        const sj_hook_change *change = &module->changes[i];
        same =
            memcmp((const void *)(uintptr_t)change->address, change->original, change->window) == 0;
    }
    return same;
}

/* Computes the address range of the plan's text. Returns false if it is not within the module's
 * text. */
static bool find_text(const ready_header *header, const sj_ready_place *place, uint64_t *low,
                      uint64_t *high)
{
    *low = place->bias + header->text_low;
    *high = place->bias + header->text_high;
    return *low <= *high && *low >= place->text_low && *high <= place->text_high;
}

/* Compares the text with the plan and writes the changes. Returns false, and writes nothing, if the
 * text differs. Makes the pages writable before the comparison, so that the comparison reads the
 * copied pages. */
static bool change_text(const ready_header *header, const sj_ready_place *place,
                        sj_hooked_module *module)
{
    sj_text text;
    uint64_t low;
    uint64_t high;
    if (!find_text(header, place, &low, &high) || sj_text_open(&text, low, high) != SJ_OK) {
        return false;
    }
    if (module->change_count / CHANGES_PER_PAGE >= (high - low) / sj_page_bytes()) {
        sj_text_populate(&text);
    }
    const bool same = is_text_as_planned(module);
    for (uint32_t i = 0; i < module->change_count && same; i++) {
        sj_hooks_write_change(&module->changes[i]);
    }
    sj_text_close(&text);
    return same;
}

bool sj_ready_apply(const char *plan_path, const sj_ready_place *place, sj_hooked_module *module,
                    sj_hooks_report *report)
{
    ready_header key;
    ready_file file = {.descriptor = -1};
    if (sj_hooks_are_special() || sj_recorder_changes != NULL ||
        !find_key(plan_path, place->first_function, &key)) {
        return false;
    }
    *module = (sj_hooked_module){.bias = place->bias, .first_function = place->first_function};
    const bool applied =
        open_file(plan_path, &key, &file) && map_area(&file, place->bias, module) &&
        copy_changes(file.header, place, module) && change_text(file.header, place, module);
    if (applied) {
        report->hooked = file.header->hooked;
        report->stub_bytes = (uint32_t)module->stubs_bytes;
    } else {
        sj_hooks_forget(module);
    }
    close_file(&file);
    return applied;
}

/* True if other processes can use the stubs. Stubs of functions with values or receivers, and of
 * library calls, refer to further data of this process. */
static bool can_be_shared(const sj_plan_header *plan, const sj_hooked_module *module,
                          const sj_hooks_report *report)
{
    bool is_usable = report->is_movable && report->failed == 0 && module->calls == NULL &&
                     module->stubs != NULL && module->stubs_bytes < LARGEST_AREA &&
                     !sj_hooks_are_special() && sj_recorder_changes == NULL;
    for (uint32_t i = 0; i < plan->function_count && is_usable; i++) {
        const sj_plan_function *function = &sj_plan_functions(plan)[i];
        is_usable = !sj_plan_has_values(function) && function->receiver == 0;
    }
    return is_usable;
}

static bool write_at(int file, const void *bytes, uint64_t count, uint64_t offset)
{
    return SJ_SYS(SYS_pwrite64, file, bytes, count, offset, 0, 0) == (long)count;
}

static bool write_file(int file, const ready_header *header, const sj_hooked_module *module)
{
    return write_at(file, header, sizeof(*header), 0) &&
           write_at(file, module->changes, header->change_count * sizeof(*module->changes),
                    sizeof(*header)) &&
           write_at(file, module->stubs, header->stubs_bytes, area_offset(header));
}

/* True if the file at `path` holds stubs of this plan, from any build of the agent. So two builds
 * do not replace each other's files. */
static bool holds_plan(const char *path, const ready_header *key)
{
    ready_header saved;
    const long file = sj_sys_open_at(AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW, 0);
    if (file < 0) {
        return false;
    }
    const bool is_read = sj_sys_read((int)file, &saved, sizeof(saved)) == (long)sizeof(saved);
    (void)sj_sys_close((int)file);
    return is_read && memcmp(&saved, key, offsetof(ready_header, agent)) == 0;
}

/* True if this process has to write the stubs: an earlier process has created the file, and the
 * file does not hold stubs of this plan. If there is no file, creates an empty one and returns
 * false. A file with stubs of a replaced plan counts as empty. */
static bool must_write(const char *path, const ready_header *key)
{
    struct stat status;
    const long file =
        sj_sys_open_at(AT_FDCWD, path, O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file >= 0) {
        (void)sj_sys_close((int)file);
        return false;
    }
    return SJ_SYS(SYS_newfstatat, AT_FDCWD, path, &status, AT_SYMLINK_NOFOLLOW, 0, 0) == 0 &&
           is_trusted(&status) && !holds_plan(path, key);
}

/* Sets temporary_path to a name with the process id. If a process is killed, its file does not
 * block other processes. */
static bool name_temporary_file(const char *plan_path)
{
    enum { SUFFIX_BYTES = 24, BASE = 10 };
    static const char start[] = ".stubs.";
    char suffix[SUFFIX_BYTES];
    size_t at = sizeof(suffix) - 1;
    suffix[at] = '\0';
    uint32_t number = (uint32_t)SJ_SYS(SYS_getpid, 0, 0, 0, 0, 0, 0);
    do {
        suffix[--at] = (char)('0' + number % BASE);
        number /= BASE;
    } while (number != 0);
    at -= sizeof(start) - 1;
    memcpy(suffix + at, start, sizeof(start) - 1);
    return append_suffix(plan_path, suffix + at, temporary_path);
}

static void write_stubs(const ready_header *header, const sj_hooked_module *module)
{
    const long file =
        sj_sys_open_at(AT_FDCWD, temporary_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) {
        return;
    }
    const bool is_whole = write_file((int)file, header, module);
    (void)sj_sys_close((int)file);
    if (!is_whole ||
        SJ_SYS(SYS_renameat2, AT_FDCWD, temporary_path, AT_FDCWD, stubs_path, 0, 0) != 0) {
        (void)SJ_SYS(SYS_unlinkat, AT_FDCWD, temporary_path, 0, 0, 0, 0);
    }
}

void sj_ready_keep(const char *plan_path, const sj_ready_plan *file, const void *plan,
                   const sj_hooked_module *module, const sj_hooks_report *report)
{
    ready_header header = make_key(file, module->first_function);
    if (!can_be_shared(plan, module, report) || !append_suffix(plan_path, ".stubs", stubs_path) ||
        !name_temporary_file(plan_path) || !must_write(stubs_path, &header)) {
        return;
    }
    header.bias = module->bias;
    header.text_low = ((const sj_plan_header *)plan)->text_low;
    header.text_high = ((const sj_plan_header *)plan)->text_high;
    header.stubs = (uint64_t)(uintptr_t)module->stubs;
    header.stubs_bytes = module->stubs_bytes;
    header.change_count = module->change_count;
    header.hooked = report->hooked;
    if (sj_sys_may_write(area_offset(&header) + header.stubs_bytes)) {
        write_stubs(&header, module);
    }
}
