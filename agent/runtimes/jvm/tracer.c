#include "agent/runtimes/jvm/tracer.h"

#include "agent/objfile/eh_frame.h"

#include <elf.h>

/* Names of the functions with which a runtime traces its methods. A symbol is given without its
 * parameters, because they differ by version. */
typedef struct tracer_row {
    const char *runtime;
    const char *entry_symbol;
    const char *exit_symbol; /* NULL: one function traces both entries and exits. */
    const char *provider;    /* Provider of the SystemTap probes. NULL: the runtime has none. */
    const char *entry_probe;
    const char *exit_probe;
} tracer_row;

/* sj_tracer_find skips the rows of Dalvik and ART, which prepare a port to Android. They have one
 * function for entry and exit: its hook must read the third argument. */
static const tracer_row rows[] = {
    {"HotSpot, JDK 8 and later", "_ZN13SharedRuntime19dtrace_method_entryE",
     "_ZN13SharedRuntime18dtrace_method_exitE", "hotspot", "method__entry", "method__return"},
    {"Dalvik, Android 1 to 4", "_Z17dvmMethodTraceAdd", NULL, NULL, NULL, NULL},
    {"ART, Android 5 and later", "_ZN3art5Trace19LogMethodTraceEventE", NULL, NULL, NULL, NULL},
};

/* A SystemTap probe, as its note in .note.stapsdt describes it. */
typedef struct probe_note {
    uint64_t place; /* Address of the probe when the note was written. */
    uint64_t base;  /* Address of .stapsdt.base when the note was written. */
    sj_slice texts; /* Provider and name, each NUL-terminated, then the arguments. */
} probe_note;

/* Reads the next note. Returns false if the note is not complete. Leaves `texts` empty if the note
 * is of another kind. */
static bool read_note(sj_reader *reader, probe_note *note)
{
    enum { PROBE_NOTE = 3, ALIGNMENT = 4 };
    static const char owner[] = "stapsdt";
    const uint32_t name_bytes = sj_read_u32(reader);
    const uint32_t bytes = sj_read_u32(reader);
    const uint32_t type = sj_read_u32(reader);
    const uint64_t padded_name = ((uint64_t)name_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    const uint8_t *name = sj_read_bytes(reader, padded_name);
    sj_reader contents = sj_reader_of(sj_read_bytes(reader, bytes), reader->bad ? 0 : bytes);
    const size_t padding = (ALIGNMENT - bytes % ALIGNMENT) % ALIGNMENT;
    sj_read_bytes(reader, padding <= sj_reader_left(reader) ? padding : 0);
    *note = (probe_note){0};
    if (!reader->bad && type == PROBE_NOTE && name_bytes == sizeof(owner) &&
        memcmp(name, owner, sizeof(owner)) == 0) {
        note->place = sj_read_u64(&contents);
        note->base = sj_read_u64(&contents);
        (void)sj_read_u64(&contents); /* Semaphore. */
        note->texts = (sj_slice){contents.at, sj_reader_left(&contents)};
    }
    return !reader->bad;
}

static bool is_probe(const probe_note *note, const char *provider, const char *name)
{
    const size_t provider_bytes = strlen(provider) + 1;
    const size_t name_bytes = strlen(name) + 1;
    return note->texts.size >= provider_bytes + name_bytes &&
           memcmp(note->texts.data, provider, provider_bytes) == 0 &&
           memcmp(note->texts.data + provider_bytes, name, name_bytes) == 0;
}

/* Returns the address of a probe, as in the file, or 0 if there is none. Adds the distance by which
 * the code was moved after the note was written (prelink). */
static uint64_t find_probe(const sj_elf *elf, const char *provider, const char *name)
{
    const sj_elf_section *notes = sj_elf_find_section(elf, ".note.stapsdt");
    const sj_elf_section *base = sj_elf_find_section(elf, ".stapsdt.base");
    if (notes == NULL) {
        return 0;
    }
    const sj_slice bytes = sj_elf_section_bytes(elf, notes);
    sj_reader reader = sj_reader_of(bytes.data, bytes.size);
    probe_note note;
    while (sj_reader_left(&reader) > 0 && read_note(&reader, &note)) {
        if (is_probe(&note, provider, name)) {
            return note.place + (base != NULL ? base->address - note.base : 0);
        }
    }
    return 0;
}

/* Returns the start of the function whose symbol has this beginning. Returns 0 if there is none, or
 * several. */
static uint64_t find_symbol(const sj_elf *elf, const char *beginning)
{
    uint64_t found = 0;
    for (uint32_t i = 0; i < elf->section_count; i++) {
        const sj_elf_section *section = &elf->sections[i];
        if (section->type != SHT_SYMTAB || section->link >= elf->section_count) {
            continue;
        }
        const sj_slice table = sj_elf_section_bytes(elf, section);
        const sj_slice names = sj_elf_section_bytes(elf, &elf->sections[section->link]);
        sj_elf_symbol symbol;
        for (uint32_t at = 0; sj_elf_symbol_at(table, at, &symbol); at++) {
            if (symbol.type == STT_FUNC && symbol.value != 0 &&
                strncmp(sj_elf_string(names, symbol.name), beginning, strlen(beginning)) == 0) {
                if (found != 0 && found != symbol.value) {
                    return 0;
                }
                found = symbol.value;
            }
        }
    }
    return found;
}

/* Returns the start of the function that contains `probe`. Returns 0 if `probe` is 0, if its
 * function is unknown, or if `symbol` is another address. A `symbol` of 0 is not compared. */
static uint64_t function_start(uint64_t symbol, uint64_t probe, const sj_eh_frame *unwind)
{
    const sj_fde *range = probe != 0 ? sj_eh_frame_find(unwind, probe) : NULL;
    return range != NULL && (symbol == 0 || symbol == range->start) ? range->start : 0;
}

/* Finds the functions of one row. Requires both probes and .eh_frame. Returns SJ_ENOTFOUND, or
 * errors of sj_eh_frame_read. */
static sj_status find_row(const sj_elf *elf, const tracer_row *row, sj_tracer *tracer)
{
    const sj_elf_section *section = sj_elf_find_section(elf, ".eh_frame");
    const uint64_t entry_probe = find_probe(elf, row->provider, row->entry_probe);
    const uint64_t exit_probe = find_probe(elf, row->provider, row->exit_probe);
    sj_eh_frame unwind = {0};
    if (entry_probe == 0 || exit_probe == 0 || section == NULL) {
        return SJ_ENOTFOUND;
    }
    const sj_status status =
        sj_eh_frame_read(sj_elf_section_bytes(elf, section), section->address, &unwind);
    if (status == SJ_OK) {
        tracer->entry = function_start(find_symbol(elf, row->entry_symbol), entry_probe, &unwind);
        tracer->exit = function_start(find_symbol(elf, row->exit_symbol), exit_probe, &unwind);
    }
    sj_eh_frame_free(&unwind);
    SJ_TRY(status);
    return tracer->entry != 0 && tracer->exit != 0 ? SJ_OK : SJ_ENOTFOUND;
}

sj_status sj_tracer_find(const sj_elf *elf, sj_tracer *tracer)
{
    *tracer = (sj_tracer){0};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].exit_symbol != NULL) {
            const sj_status status = find_row(elf, &rows[i], tracer);
            if (status != SJ_ENOTFOUND) {
                return status;
            }
        }
    }
    return SJ_ENOTFOUND;
}
