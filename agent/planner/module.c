#include "agent/planner/map_evidence.h"

#include "agent/objfile/debug_file.h"
#include "agent/objfile/map_file.h"
#include "agent/runtimes/runtime.h"
#include "proto/base/array.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Sets the module's text: all executable sections in the largest executable segment, or the whole
 * segment if there are no sections. */
static sj_status find_text(sj_module *module, sj_error *error)
{
    const sj_elf *elf = &module->elf;
    const sj_elf_segment *text = NULL;
    for (uint32_t i = 0; i < elf->segment_count; i++) {
        const sj_elf_segment *segment = &elf->segments[i];
        if (segment->type == PT_LOAD && (segment->flags & PF_X) != 0 &&
            (text == NULL || segment->file_bytes > text->file_bytes)) {
            text = segment;
        }
    }
    if (text == NULL || text->file_bytes == 0 || text->address + text->file_bytes < text->address) {
        return sj_fail(error, SJ_EUNSUPPORTED, "the file has no executable segment");
    }
    const uint64_t end = text->address + text->file_bytes;
    uint64_t low = UINT64_MAX;
    uint64_t high = 0;
    for (uint32_t i = 0; i < elf->section_count; i++) {
        const sj_elf_section *section = &elf->sections[i];
        if ((section->flags & SHF_EXECINSTR) != 0 && section->size != 0 &&
            section->address >= text->address && section->address < end &&
            section->size <= end - section->address) {
            low = section->address < low ? section->address : low;
            high =
                section->address + section->size > high ? section->address + section->size : high;
        }
    }
    module->text_low = high != 0 ? low : text->address;
    const uint64_t bytes = (high != 0 ? high : end) - module->text_low;
    const sj_slice slice = sj_elf_at(elf, module->text_low);
    if (slice.size < bytes || bytes > INT32_MAX) {
        return sj_fail(error, SJ_ECORRUPT, "the executable segment lies outside of the file");
    }
    module->text_bytes = (uint32_t)bytes;
    module->text = slice.data;
    return SJ_OK;
}

/* Appends the symbols of a map file, and checks that the map belongs to the module. */
static sj_status load_map(const char *path, sj_module *module, sj_error *error)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat status;
    if (file < 0 || fstat(file, &status) != 0) {
        const int reason = errno;
        if (file >= 0) {
            close(file);
        }
        return sj_fail(error, SJ_ENOTFOUND, "cannot open map file %s: %s", path, strerror(reason));
    }
    void *bytes = MAP_FAILED;
    if (S_ISREG(status.st_mode) && status.st_size > 0) {
        bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    }
    close(file);
    if (bytes == MAP_FAILED) {
        return sj_fail(error, SJ_ECORRUPT, "map file %s is empty or not a regular file", path);
    }
    const sj_slice slice = {.data = bytes, .size = (size_t)status.st_size};
    const size_t own_count = module->symbols.count;
    sj_status result = sj_map_parse(slice, &module->map_names, &module->symbols);
    if (result != SJ_OK) {
        (void)sj_fail(error, result, "map file %s has no line of a known format", path);
    } else {
        const sj_map_symbols map = {.path = path,
                                    .bytes = slice,
                                    .names = module->map_names,
                                    .items = module->symbols.items + own_count,
                                    .count = module->symbols.count - own_count};
        result = sj_map_evidence_check(module, own_count, &map, error);
    }
    munmap(bytes, (size_t)status.st_size);
    return result;
}

/* A name that is not in the module's file. The module owns it. */
typedef struct sj_kept_name {
    struct sj_kept_name *next;
    char text[];
} sj_kept_name;

sj_status sj_module_keep_name(sj_module *module, const char *name, const char **kept)
{
    const size_t bytes = strlen(name) + 1;
    sj_kept_name *copy = malloc(sizeof(*copy) + bytes);
    if (copy == NULL) {
        return SJ_ENOMEM;
    }
    memcpy(copy->text, name, bytes);
    copy->next = module->kept_names;
    module->kept_names = copy;
    *kept = copy->text;
    return SJ_OK;
}

static sj_status add_runtime_function(void *context, const sj_runtime_function *function)
{
    sj_module *module = context;
    const char *kept = NULL;
    SJ_TRY(sj_module_keep_name(module, function->name, &kept));
    return sj_symbols_add(&module->symbols, (sj_symbol){.address = function->address,
                                                        .name = kept,
                                                        .source = SJ_SYMBOL_RUNTIME,
                                                        .kind = SJ_SYMBOL_FUNCTION,
                                                        .receiver = function->receiver});
}

static void free_kept_names(sj_module *module)
{
    while (module->kept_names != NULL) {
        sj_kept_name *name = module->kept_names;
        module->kept_names = name->next;
        free(name);
    }
}

/* Reads symbols of the module's file, or else of its debug file or MiniDebugInfo. Then adds
 * .dynsym, the map file and the names that language runtimes know. */
static sj_status load_symbols(const sj_planner_options *options, sj_module *module, sj_error *error)
{
    sj_symbols *symbols = &module->symbols;
    SJ_TRY(sj_symbols_read(&module->elf, SHT_SYMTAB, SJ_SYMBOL_SYMTAB, symbols));
    if (symbols->count == 0) {
        const char *root = options->debug_root != NULL ? options->debug_root : "/usr/lib/debug";
        if (sj_debug_file_find(&module->elf, options->module_path, root, &module->debug,
                               module->debug_path, sizeof(module->debug_path)) == SJ_OK) {
            SJ_TRY(sj_symbols_read(&module->debug, SHT_SYMTAB, SJ_SYMBOL_DEBUG_FILE, symbols));
        } else {
            module->debug_path[0] = 0;
        }
    }
    if (symbols->count == 0 && sj_mini_debug_open(&module->elf, &module->mini) == SJ_OK) {
        SJ_TRY(sj_symbols_read(&module->mini, SHT_SYMTAB, SJ_SYMBOL_MINI_DEBUG_INFO, symbols));
    }
    SJ_TRY(sj_symbols_read(&module->elf, SHT_DYNSYM, SJ_SYMBOL_DYNSYM, symbols));
    if (options->map_file != NULL) {
        SJ_TRY(load_map(options->map_file, module, error));
    }
    SJ_TRY(sj_runtimes_find_functions(&module->elf, add_runtime_function, module));
    sj_symbols_sort(symbols);
    return SJ_OK;
}

sj_status sj_module_load(const sj_planner_options *options, sj_machine_finder find_machine,
                         sj_module *module, sj_error *error)
{
    SJ_TRY(sj_elf_open(options->module_path, &module->elf, error));
    module->machine = find_machine(module->elf.machine);
    if (module->machine == NULL || (module->elf.type != ET_EXEC && module->elf.type != ET_DYN)) {
        return sj_fail(error, SJ_EUNSUPPORTED, "%s is not an x86-64 or AArch64 program or library",
                       options->module_path);
    }
    SJ_TRY(find_text(module, error));
    module->is_go = sj_elf_find_section(&module->elf, ".gopclntab") != NULL ||
                    sj_elf_find_section(&module->elf, ".note.go.buildid") != NULL;
    const sj_elf_section *frames = sj_elf_find_section(&module->elf, ".eh_frame");
    if (frames != NULL) {
        const sj_slice bytes = sj_elf_section_bytes(&module->elf, frames);
        SJ_TRY(sj_eh_frame_read(bytes, frames->address, &module->unwind));
    }
    const sj_status status = load_symbols(options, module, error);
    if (status != SJ_OK) {
        return status == SJ_ENOMEM ? sj_fail(error, status, "out of memory for symbols") : status;
    }
    return SJ_OK;
}

void sj_module_close(sj_module *module)
{
    sj_symbols_free(&module->symbols);
    sj_eh_frame_free(&module->unwind);
    sj_elf_close(&module->elf);
    sj_elf_close(&module->debug);
    sj_elf_close(&module->mini);
    free(module->own_text);
    free(module->map_names);
    free_kept_names(module);
    free(module->ranges);
    free(module->codes);
    free(module->first_codes);
    free(module->ranges_before);
    free(module->switch_tables);
    free(module->targets); /* one allocation for all bit sets */
    *module = (sj_module){0};
}
