#include "agent/ptrace/tracee_modules.h"

#include "agent/abi/page.h"
#include "agent/ptrace/arch.h"
#include "agent/ptrace/proc_status.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

enum { SEGMENTS_MAX = 64, DYNAMIC_MAX = 128, CHAIN_MAX = 4096, NAME_MAX_BYTES = 128 };

/* The tables of a module that a symbol lookup reads, as addresses in the process. */
typedef struct symbol_tables {
    uint64_t bias;
    uint64_t symbols;
    uint64_t strings;
    uint64_t hash;
} symbol_tables;

typedef struct hash_head {
    uint32_t buckets;
    uint32_t first_symbol;
    uint32_t bloom_words;
    uint32_t bloom_shift;
} hash_head;

/* A line of /proc/PID/maps. */
typedef struct file_mapping {
    uint64_t low;
    uint64_t high;
    uint64_t offset; /* in the file */
    bool is_code;
    const char *path; /* within the line; "[vdso]" for the kernel's own library */
} file_mapping;

/* Returns false if the line is not a mapping of a file. */
static bool parse_line(char *line, file_mapping *mapping)
{
    unsigned long low;
    unsigned long high;
    unsigned long offset;
    char protection[5];
    int at = 0;
    line[strcspn(line, "\n")] = '\0';
    if (sscanf(line, "%lx-%lx %4s %lx %*s %*s %n", &low, &high, protection, &offset, &at) != 4 ||
        at == 0 || (line[at] != '/' && strcmp(line + at, "[vdso]") != 0)) {
        return false;
    }
    *mapping = (file_mapping){.low = low,
                              .high = high,
                              .offset = offset,
                              .is_code = protection[2] == 'x',
                              .path = line + at};
    return true;
}

static bool is_named(const char *path, const char *prefix)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL && strncmp(slash + 1, prefix, strlen(prefix)) == 0;
}

/* True if the mapping is a part of the module that the mappings before it have begun. Programs also
 * map pieces of libraries only to read them, for example symbols for stack traces. Such a piece is
 * never executable, and the module itself begins again with the file's first byte. The loader
 * leaves no gap in a module, but the kernel may, in the program and the loader. */
static bool is_part(const sj_remote_module *module, const file_mapping *mapping)
{
    if (strcmp(module->path, mapping->path) != 0) {
        return false;
    }
    return module->code_low == 0
               ? mapping->offset != 0
               : mapping->low == module->high || (mapping->is_code && mapping->offset != 0);
}

static void add_mapping(sj_remote_module *module, const file_mapping *mapping)
{
    if (!is_part(module, mapping)) {
        *module = (sj_remote_module){.low = mapping->low};
        snprintf(module->path, sizeof(module->path), "%s", mapping->path);
    }
    module->high = mapping->high;
    if (mapping->is_code) {
        module->code_low = module->code_low == 0 ? mapping->low : module->code_low;
        module->code_high = mapping->high;
    }
}

static FILE *open_maps(pid_t pid)
{
    char name[64];
    snprintf(name, sizeof(name), "/proc/%d/maps", (int)sj_proc_living(pid));
    return fopen(name, "re");
}

sj_status sj_remote_module_find(pid_t pid, const char *prefix, sj_remote_module *module)
{
    char line[PATH_MAX + 128];
    file_mapping mapping;
    *module = (sj_remote_module){0};
    FILE *file = open_maps(pid);
    if (file == NULL) {
        return SJ_EPERM;
    }
    while (fgets(line, sizeof(line), file) != NULL) {
        if (parse_line(line, &mapping) && is_named(mapping.path, prefix) &&
            (module->code_low == 0 || is_part(module, &mapping))) {
            add_mapping(module, &mapping);
        }
    }
    fclose(file);
    return module->code_low != 0 ? SJ_OK : SJ_ENOTFOUND;
}

sj_status sj_remote_modules_each(pid_t pid, sj_remote_module_visit *visit, void *context)
{
    char line[PATH_MAX + 128];
    file_mapping mapping;
    sj_remote_module module = {0};
    FILE *file = open_maps(pid);
    if (file == NULL) {
        return SJ_EPERM;
    }
    while (fgets(line, sizeof(line), file) != NULL) {
        if (!parse_line(line, &mapping)) {
            continue;
        }
        if (module.code_low != 0 && !is_part(&module, &mapping)) {
            visit(context, &module);
        }
        add_mapping(&module, &mapping);
    }
    if (module.code_low != 0) {
        visit(context, &module);
    }
    fclose(file);
    return SJ_OK;
}

sj_status sj_remote_mapping_find(pid_t pid, uint64_t address, sj_remote_range *range, bool *grows)
{
    char path[64];
    char line[PATH_MAX + 128];
    sj_status status = SJ_ENOTFOUND;
    snprintf(path, sizeof(path), "/proc/%d/maps", (int)sj_proc_living(pid));
    FILE *file = fopen(path, "re");
    while (file != NULL && status != SJ_OK && fgets(line, sizeof(line), file) != NULL) {
        unsigned long low;
        unsigned long high;
        if (sscanf(line, "%lx-%lx", &low, &high) == 2 && address >= low && address < high) {
            *range = (sj_remote_range){.low = low, .high = high};
            *grows = strstr(line, "[stack]") != NULL;
            status = SJ_OK;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return status;
}

sj_status sj_remote_libc_find(pid_t pid, sj_remote_module *module)
{
    const sj_status status = sj_remote_module_find(pid, "libc.so.", module);
    return status == SJ_OK ? SJ_OK : sj_remote_module_find(pid, "libc-", module);
}

static uint64_t relocated(uint64_t value, uint64_t bias)
{
    /* Some loaders have already added the bias to these values in memory. */
    return value < bias ? value + bias : value;
}

static sj_status read_dynamic(const sj_tracee *target, uint64_t address, symbol_tables *tables)
{
    Elf64_Dyn entry;
    for (size_t i = 0; i < DYNAMIC_MAX; i++) {
        SJ_TRY(sj_tracee_read(target, address + i * sizeof(entry), &entry, sizeof(entry)));
        const uint64_t value = relocated(entry.d_un.d_ptr, tables->bias);
        if (entry.d_tag == DT_NULL) {
            break;
        }
        tables->symbols = entry.d_tag == DT_SYMTAB ? value : tables->symbols;
        tables->strings = entry.d_tag == DT_STRTAB ? value : tables->strings;
        tables->hash = entry.d_tag == DT_GNU_HASH ? value : tables->hash;
    }
    return tables->symbols != 0 && tables->strings != 0 && tables->hash != 0 ? SJ_OK : SJ_ENOTFOUND;
}

static sj_status read_tables(const sj_tracee *target, uint64_t base, symbol_tables *tables)
{
    Elf64_Ehdr head;
    Elf64_Phdr segments[SEGMENTS_MAX];
    *tables = (symbol_tables){0};
    SJ_TRY(sj_tracee_read(target, base, &head, sizeof(head)));
    if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_phnum > SEGMENTS_MAX ||
        head.e_phentsize != sizeof(segments[0])) {
        return SJ_ECORRUPT;
    }
    SJ_TRY(
        sj_tracee_read(target, base + head.e_phoff, segments, head.e_phnum * sizeof(segments[0])));
    uint64_t dynamic = 0;
    bool has_load = false;
    for (size_t i = 0; i < head.e_phnum; i++) {
        if (segments[i].p_type == PT_LOAD && !has_load) {
            has_load = true;
            tables->bias = base - sj_page_start(segments[i].p_vaddr);
        }
        dynamic = segments[i].p_type == PT_DYNAMIC ? segments[i].p_vaddr : dynamic;
    }
    return dynamic != 0 ? read_dynamic(target, dynamic + tables->bias, tables) : SJ_ENOTFOUND;
}

static uint32_t hash_name(const char *name)
{
    uint32_t hash = 5381;
    for (; *name != '\0'; name++) {
        hash = hash * 33 + (unsigned char)*name;
    }
    return hash;
}

/* Returns SJ_OK if symbol number `index` is called `name` and is defined. */
static sj_status match(const sj_tracee *target, const symbol_tables *tables, uint32_t index,
                       const char *name, sj_remote_range *range)
{
    Elf64_Sym symbol;
    char found[NAME_MAX_BYTES] = "";
    const size_t bytes = strlen(name) + 1;
    SJ_TRY(
        sj_tracee_read(target, tables->symbols + index * sizeof(symbol), &symbol, sizeof(symbol)));
    if (bytes > sizeof(found)) {
        return SJ_EINVAL;
    }
    SJ_TRY(sj_tracee_read(target, tables->strings + symbol.st_name, found, bytes));
    if (symbol.st_shndx == SHN_UNDEF || memcmp(found, name, bytes) != 0) {
        return SJ_ENOTFOUND;
    }
    range->low = tables->bias + symbol.st_value;
    range->high = range->low + symbol.st_size;
    return SJ_OK;
}

sj_status sj_remote_symbol_range(const sj_tracee *target, const sj_remote_module *module,
                                 const char *name, sj_remote_range *range)
{
    symbol_tables tables;
    hash_head head;
    uint32_t index = 0;
    SJ_TRY(read_tables(target, module->low, &tables));
    SJ_TRY(sj_tracee_read(target, tables.hash, &head, sizeof(head)));
    if (head.buckets == 0) {
        return SJ_ECORRUPT;
    }
    const uint32_t wanted = hash_name(name);
    const uint64_t buckets = tables.hash + sizeof(head) + head.bloom_words * sizeof(uint64_t);
    const uint64_t chains = buckets + head.buckets * sizeof(uint32_t);
    SJ_TRY(sj_tracee_read(target, buckets + wanted % head.buckets * sizeof(uint32_t), &index,
                          sizeof(index)));
    for (uint32_t steps = 0; index >= head.first_symbol && steps < CHAIN_MAX; steps++, index++) {
        uint32_t hash = 0;
        SJ_TRY(sj_tracee_read(target, chains + (index - head.first_symbol) * sizeof(hash), &hash,
                              sizeof(hash)));
        const sj_status status =
            (hash | 1) == (wanted | 1) ? match(target, &tables, index, name, range) : SJ_ENOTFOUND;
        if (status != SJ_ENOTFOUND || (hash & 1) != 0) {
            return status;
        }
    }
    return SJ_ENOTFOUND;
}

sj_status sj_remote_symbol(const sj_tracee *target, const sj_remote_module *module,
                           const char *name, uint64_t *address)
{
    sj_remote_range range;
    SJ_TRY(sj_remote_symbol_range(target, module, name, &range));
    *address = range.low;
    return SJ_OK;
}

sj_remote_range sj_remote_fork_find(const sj_tracee *target)
{
    sj_remote_range range = {0};
    sj_remote_module libc;
    if (sj_remote_libc_find(target->pid, &libc) != SJ_OK ||
        sj_remote_symbol_range(target, &libc, "fork", &range) != SJ_OK) {
        return (sj_remote_range){0};
    }
    return range;
}

sj_status sj_remote_function_find(const sj_tracee *target, const char *name, uint64_t *function)
{
    static const char *const libraries[] = {"libc.so.", "libc-", "libdl", "ld-musl"};
    sj_remote_module module;
    for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
        if (sj_remote_module_find(target->pid, libraries[i], &module) == SJ_OK &&
            sj_remote_symbol(target, &module, name, function) == SJ_OK) {
            return SJ_OK;
        }
    }
    return SJ_ENOTFOUND;
}

uint64_t sj_remote_restorer_find(const sj_tracee *target)
{
    sj_remote_module libc;
    if (sj_remote_libc_find(target->pid, &libc) != SJ_OK) {
        return 0;
    }
    return sj_restorer_find_in(target, libc.code_low, libc.code_high);
}
