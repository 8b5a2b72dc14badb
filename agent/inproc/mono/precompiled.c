/* Design notes
 *
 * Mono's ahead-of-time compiler writes the code of an assembly into a shared object next to it. Its
 * symbol mono_aot_file_info (MonoAotFileInfo, version 171 in Mono 6.8) has the address of a list of
 * call instructions, one per method definition. The target of a call is the method's code; a target
 * outside the code means that the method has none. The runtime is not asked, because it would load
 * classes and so run code of the program. The code is patched as soon as its assembly is loaded. */
#include "agent/inproc/mono/internal.h"

#include "agent/abi/plan.h"
#include "agent/inproc/hooks/dynamic_view.h"
#include "agent/inproc/hooks/module_walk.h"
#include "agent/inproc/recorder/sys.h"

#include <string.h>

enum {
    INFO_VERSION = 171,
    INFO_CODE = 0x30, /* Offset of three addresses: start and end of the code, and the list. */
    INFO_METHODS = 0x144,
    INFO_BYTES = 0x148,
    CALL_BYTES = 5,
    CALL = 0xe8,
    INFO_ID = 0xb8, /* Offset of the address of the module id's text. */
    ID_BYTES = 36,
    METHODS_MAX = 65536, /* Maximum number of methods of an assembly. */
    ASSEMBLIES_MAX = 256,
    PATH_BYTES = 1024,
    ENDING_BYTES = 7, /* Length of ".dll.so". */
    SO_BYTES = 3
};

#define CACHE "/aot-cache/"

/* The precompiled code of an assembly. */
typedef struct precompiled {
    const char *path; /* Path of the assembly. */
    uint64_t code_low;
    uint64_t code_high;
    const uint8_t *calls; /* The list of call instructions. */
    uint32_t count;       /* Number of calls. */
    char id[ID_BYTES + 1];
} precompiled;

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* True if `module` is the assembly's path with ".so", or a file of this name in the system's cache.
 */
static bool belongs_to(const char *module, const char *assembly)
{
    static const char ending[] = ".so";
    const bool is_cached = strstr(module, CACHE) != NULL;
    const char *left = is_cached ? file_name(module) : module;
    const char *right = is_cached ? file_name(assembly) : assembly;
    const size_t bytes = strlen(right);
    return strncmp(left, right, bytes) == 0 && strcmp(left + bytes, ending) == 0;
}

/* True if `bytes` bytes from `address` on are in one segment of a module. */
static bool lies_in(const struct dl_phdr_info *info, uint64_t address, uint64_t bytes)
{
    for (uint32_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        const uint64_t low = info->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_LOAD && address >= low && bytes <= part->p_memsz &&
            address - low <= part->p_memsz - bytes) {
            return true;
        }
    }
    return false;
}

/* Reads the MonoAotFileInfo of a module. Returns false if the module has none of the known version.
 */
static bool read_info(const struct dl_phdr_info *info, precompiled *found)
{
    sj_dynamic_view view;
    static const char name[] = "mono_aot_file_info";
    uint32_t index = 0;
    uint32_t version = 0;
    uint64_t addresses[3]; /* Addresses of the code, its end, and the list. */
    uint64_t id = 0;
    if (!sj_dynamic_view_read(info, &view) ||
        !sj_symbol_next(&view, name, sj_symbol_hash(name), &index)) {
        return false;
    }
    const uint64_t address = view.bias + view.symbols[index].st_value;
    if (!lies_in(info, address, INFO_BYTES)) {
        return false;
    }
    const uint8_t *bytes = (const uint8_t *)(uintptr_t)address;
    memcpy(&version, bytes, sizeof(version));
    memcpy(addresses, bytes + INFO_CODE, sizeof(addresses));
    memcpy(&found->count, bytes + INFO_METHODS, sizeof(found->count));
    memcpy(&id, bytes + INFO_ID, sizeof(id));
    if (lies_in(info, id, ID_BYTES)) {
        memcpy(found->id, (const char *)(uintptr_t)id, ID_BYTES);
    }
    found->code_low = addresses[0];
    found->code_high = addresses[1];
    found->calls = (const uint8_t *)(uintptr_t)addresses[2];
    return version == INFO_VERSION && addresses[0] < addresses[1] &&
           lies_in(info, addresses[0], addresses[1] - addresses[0]) && found->count < METHODS_MAX &&
           lies_in(info, addresses[2], (uint64_t)found->count * CALL_BYTES);
}

static int match_module(struct dl_phdr_info *info, size_t size, void *context)
{
    precompiled *found = context;
    (void)size;
    return info->dlpi_name != NULL && belongs_to(info->dlpi_name, found->path) &&
           read_info(info, found);
}

/* Returns the address of a method definition's code, or 0 if it has none. `row` counts from 1. */
static uint64_t code_of(const precompiled *image, uint32_t row)
{
    int32_t distance = 0;
    if (row == 0 || row > image->count) {
        return 0;
    }
    const uint8_t *call = image->calls + (size_t)(row - 1) * CALL_BYTES;
    memcpy(&distance, call + 1, sizeof(distance));
    const uint64_t target = (uint64_t)(uintptr_t)call + CALL_BYTES + (uint64_t)(int64_t)distance;
    return call[0] == CALL && target >= image->code_low && target < image->code_high ? target : 0;
}

/* Sorts by ascending address (Shell sort). */
static void sort_by_address(sj_link_code_function *functions, uint32_t count)
{
    for (uint32_t gap = count / 2; gap > 0; gap /= 2) {
        for (uint32_t i = gap; i < count; i++) {
            const sj_link_code_function moved = functions[i];
            uint32_t at = i;
            for (; at >= gap && functions[at - gap].address > moved.address; at -= gap) {
                functions[at] = functions[at - gap];
            }
            functions[at] = moved;
        }
    }
}

/* Removes all functions except those that are recorded and share their code with no other method.
 * Sets the size of each: its code ends where the next code begins. Returns the number of functions
 * left. */
static uint32_t keep_recorded(sj_link_code_function *functions, uint32_t count, uint64_t end)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t next = i + 1;
        while (next < count && functions[next].address == functions[i].address) {
            next++; /* If methods share code, it is not known which of them is called. */
        }
        if (next == i + 1 && functions[i].function != 0) {
            const uint64_t bytes =
                (next < count ? functions[next].address : end) - functions[i].address;
            functions[kept] = functions[i];
            functions[kept++].bytes = (uint32_t)bytes;
        }
        i = next - 1;
    }
    return kept;
}

/* The methods of one assembly to be patched, and the refused ones. */
typedef struct found_code {
    uint32_t count;
    uint32_t refused_count;
    sj_link_code_function functions[METHODS_MAX];
    sj_link_code_function refused[METHODS_MAX];
    uint8_t marks[METHODS_MAX];
} found_code;

/* An assembly, with the methods that were patched or refused before. These are not tried again. */
typedef struct known_assembly {
    uint64_t calls; /* Address of the list of calls, which identifies the assembly. */
    uint32_t count; /* Number of methods. */
    uint8_t *rows;  /* One bit per method. */
} known_assembly;

static known_assembly known[ASSEMBLIES_MAX];
static uint32_t known_count;

/* Returns the bits of an assembly, which are 0 at first. Returns NULL if the table is full, if out
 * of memory, or if the lock cannot be taken. */
static uint8_t *find_or_add_rows(const precompiled *image)
{
    uint8_t *rows = NULL;
    if (!sj_owner_lock_acquire(&sj_mono_lock)) {
        return NULL;
    }
    const uint64_t calls = (uint64_t)(uintptr_t)image->calls;
    for (uint32_t i = 0; i < known_count && rows == NULL; i++) {
        rows = known[i].calls == calls && known[i].count == image->count ? known[i].rows : NULL;
    }
    if (rows == NULL && known_count < ASSEMBLIES_MAX) {
        rows = sj_sys_allocate(image->count / 8 + 1);
        known[known_count] = (known_assembly){.calls = calls, .count = image->count, .rows = rows};
        known_count += rows != NULL;
    }
    sj_owner_lock_free(&sj_mono_lock);
    return rows;
}

/* True if the bit of a method was 0. Sets it to 1. */
static bool claim_row(uint8_t *rows, uint32_t row)
{
    const uint8_t bit = (uint8_t)(1 << row % 8);
    const bool is_first = (rows[row / 8] & bit) == 0;
    rows[row / 8] |= bit;
    return is_first;
}

/* Collects the recorded methods that are new. First adds all methods that have code, because the
 * start of each one is the end of another; function id 0 means not recorded. Refuses a method with
 * values, because only the runtime knows their types. */
static void collect(const precompiled *image, const sj_mono_reply *reply, uint8_t *rows,
                    found_code *found)
{
    for (uint32_t row = 1; row <= image->count; row++) {
        const uint64_t address = code_of(image, row);
        if (address == 0) {
            continue;
        }
        const sj_mono_selection selection = sj_mono_selection_of_row(reply, row);
        const bool is_due = selection.function != 0 && claim_row(rows, row);
        const bool has_values = selection.descriptors != 0;
        if (is_due && has_values) {
            found->refused[found->refused_count++] =
                (sj_link_code_function){.address = address, .function = selection.function};
        }
        found->functions[found->count++] = (sj_link_code_function){
            .address = address, .function = is_due && !has_values ? selection.function : 0};
    }
    sort_by_address(found->functions, found->count);
    found->count = keep_recorded(found->functions, found->count, image->code_high);
}

static void hook_image(const precompiled *image, const sj_mono_reply *reply, bool runs)
{
    uint8_t *rows = find_or_add_rows(image);
    found_code *found = rows != NULL ? sj_sys_allocate(sizeof(*found)) : NULL;
    if (found == NULL) {
        return;
    }
    collect(image, reply, rows, found);
    if (found->count != 0) {
        sj_mono_hook_code(found->functions, NULL, found->count, runs, found->marks);
    }
    if (found->refused_count != 0) {
        sj_mono_report_unhooked_code(found->refused, found->refused_count, SJ_SKIP_PRECOMPILED);
    }
    (void)sj_sys_unmap(found, sizeof(*found));
}

/* Patches the precompiled code of an assembly that was just loaded: no thread runs it yet. */
static void hook_loaded(const char *path, const sj_mono_reply *reply)
{
    precompiled image = {.path = path};
    if (reply->first_function != 0 && sj_module_walk(match_module, &image) != 0) {
        hook_image(&image, reply, false);
    }
}

void sj_mono_add_assembly(void *assembly)
{
    const char *path = NULL;
    const sj_mono_reply *reply =
        sj_mono_ask_about_image(sj_mono_runtime.assembly_image(assembly), &path);
    if (reply != NULL) {
        hook_loaded(path, reply);
    }
}

/* Modules with precompiled code that are next to their assemblies. */
typedef struct found_images {
    uint32_t count;
    struct {
        precompiled image;
        char path[PATH_BYTES];
    } elements[ASSEMBLIES_MAX];
} found_images;

static int collect_image(struct dl_phdr_info *info, size_t size, void *context)
{
    found_images *found = context;
    const char *name = info->dlpi_name != NULL ? info->dlpi_name : "";
    const size_t bytes = strlen(name);
    (void)size;
    if (bytes < ENDING_BYTES || bytes >= PATH_BYTES || found->count == ASSEMBLIES_MAX ||
        (strcmp(name + bytes - ENDING_BYTES, ".dll.so") != 0 &&
         strcmp(name + bytes - ENDING_BYTES, ".exe.so") != 0)) {
        return 0;
    }
    precompiled *image = &found->elements[found->count].image;
    char *path = found->elements[found->count].path;
    if (strstr(name, CACHE) == NULL && read_info(info, image)) {
        memcpy(path, name, bytes - SO_BYTES);
        path[bytes - SO_BYTES] = '\0';
        found->count++;
    }
    return 0;
}

void sj_mono_hook_precompiled(void)
{
    found_images *found = sj_sys_allocate(sizeof(*found));
    if (found == NULL) {
        return;
    }
    (void)sj_module_walk(collect_image, found);
    for (uint32_t i = 0; i < found->count; i++) {
        sj_mono_reply reply = {0};
        const precompiled *image = &found->elements[i].image;
        if (sj_mono_ask_by_path(found->elements[i].path, image->id, &reply) &&
            reply.first_function != 0) {
            hook_image(image, &reply, true);
        }
        if (reply.wanted != NULL) {
            (void)sj_sys_unmap((void *)(uintptr_t)reply.wanted,
                               sj_mono_assembly_bytes(reply.count, reply.value_count));
        }
    }
    (void)sj_sys_unmap(found, sizeof(*found));
}
