/* Design notes
 *
 * gdb reads an ELF file from memory for each entry of the list. One file describes one area:
 * symbols for its code, and its unwind tables. A debugger may stop the process at any
 * moment, so an entry is complete before it is linked.
 *
 * gdb treats two stack frames at one address as the same frame if they have the same function. So
 * the code that stubs call has its own symbols. */
#include "agent/inproc/hooks/debugger.h"

#include "agent/abi/machine.h"
#include "agent/abi/stub_map.h"
#include "agent/inproc/hooks/unwind_table.h"

#include <elf.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { MOST_IMAGES = 1024, MOST_SYMBOLS = 16, NAMES_BYTES = 56 };

/* Offsets in `names`. */
enum { NAME_TEXT = 1, NAME_FRAMES = 7, NAME_SYMBOLS = 17, NAME_NAMES = 25, NAME_STUBS = 33 };

static const char names[NAMES_BYTES] = "\0.text\0.eh_frame\0.symtab\0.strtab\0sojourn_stubs";

enum { SECTION_TEXT = 1, SECTION_FRAMES, SECTION_SYMBOLS, SECTION_NAMES, SECTIONS };

/* The ELF file, in memory, that a debugger reads. */
typedef struct debug_image {
    ElfW(Ehdr) header;
    ElfW(Shdr) sections[SECTIONS];
    ElfW(Sym) symbols[MOST_SYMBOLS]; /* the first is ELF's null symbol */
    char names[NAMES_BYTES];
    uint8_t frames[SJ_UNWIND_FRAMES_BYTES];
} debug_image;

/* gdb's struct jit_code_entry. */
typedef struct code_entry {
    struct code_entry *_Atomic next;
    struct code_entry *_Atomic previous;
    const debug_image *image;
    uint64_t bytes;
} code_entry;

/* gdb's struct jit_descriptor. */
typedef struct code_list {
    uint32_t version;
    uint32_t action;
    code_entry *relevant;
    code_entry *_Atomic first;
} code_list;

enum { CODE_LIST_VERSION = 1, ACTION_NONE = 0, ACTION_ADD = 1, ACTION_REMOVE = 2 };

static const void *areas[MOST_IMAGES]; /* NULL: the element is free */
static uint32_t
    area_count; /* number of elements used so far; later elements of `files` take no memory yet */
static struct {
    code_entry entry;
    debug_image image;
} files[MOST_IMAGES];

/* gdb requires these names. They are not in a dynamic table, so they do not replace a program's own
 * symbols of these names. */
static __attribute__((used)) code_list __jit_debug_descriptor = {/* NOLINT */
                                                                 .version = CODE_LIST_VERSION};

/* A debugger sets a breakpoint here. */
static __attribute__((noinline, used)) void __jit_debug_register_code(void) /* NOLINT */
{
    __asm__ volatile("" ::: "memory");
}

static void notify_debugger(uint32_t action, code_entry *entry)
{
    __jit_debug_descriptor.action = action;
    __jit_debug_descriptor.relevant = entry;
    __jit_debug_register_code();
    __jit_debug_descriptor.action = ACTION_NONE;
    __jit_debug_descriptor.relevant = NULL;
}

/* Returns the address at which a debugger looks for the unwind tables. */
static uint64_t frames_address(uint64_t area)
{
    return area + SJ_STUB_AREA_OFFSET + sizeof(sj_stub_area);
}

static void describe_sections(debug_image *image, uint64_t area, const sj_stub_area *head,
                              uint32_t symbols)
{
    ElfW(Shdr) *sections = image->sections;
    sections[SECTION_TEXT] = (ElfW(Shdr)){.sh_name = NAME_TEXT,
                                          .sh_type = SHT_NOBITS,
                                          .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
                                          .sh_addr = area,
                                          .sh_size = head->code_end,
                                          .sh_addralign = 1};
    sections[SECTION_FRAMES] = (ElfW(Shdr)){.sh_name = NAME_FRAMES,
                                            .sh_type = SHT_PROGBITS,
                                            .sh_flags = SHF_ALLOC,
                                            .sh_addr = frames_address(area),
                                            .sh_offset = offsetof(debug_image, frames),
                                            .sh_size = sizeof(image->frames),
                                            .sh_addralign = sizeof(uint64_t)};
    sections[SECTION_SYMBOLS] = (ElfW(Shdr)){.sh_name = NAME_SYMBOLS,
                                             .sh_type = SHT_SYMTAB,
                                             .sh_offset = offsetof(debug_image, symbols),
                                             .sh_size = symbols * sizeof(image->symbols[0]),
                                             .sh_link = SECTION_NAMES,
                                             .sh_info = 1,
                                             .sh_addralign = sizeof(uint64_t),
                                             .sh_entsize = sizeof(image->symbols[0])};
    sections[SECTION_NAMES] = (ElfW(Shdr)){.sh_name = NAME_NAMES,
                                           .sh_type = SHT_STRTAB,
                                           .sh_offset = offsetof(debug_image, names),
                                           .sh_size = sizeof(image->names),
                                           .sh_addralign = 1};
}

/* Writes one symbol for each run of map entries of one kind: code that stubs call, or other code.
 * The last symbol extends to the end of the code. Returns the number of symbols, including the null
 * symbol. */
static uint32_t describe_symbols(debug_image *image, uint64_t area, const sj_stub_area *head)
{
    const sj_stub_entry *entries = (const void *)(uintptr_t)(area + head->map);
    uint32_t count = 1;
    bool was_called = false;
    for (uint32_t i = 0; i < head->count && count < MOST_SYMBOLS; i++) {
        const bool is_called = entries[i].place >> SJ_STUB_KIND_SHIFT == SJ_STUB_CALLED;
        const uint64_t start = area + (entries[i].start >> SJ_STUB_STACK_BITS);
        if (count > 1 && is_called == was_called) {
            continue;
        }
        was_called = is_called;
        image->symbols[count - 1].st_size =
            count > 1 ? start - image->symbols[count - 1].st_value : 0;
        image->symbols[count++] = (ElfW(Sym)){.st_name = NAME_STUBS,
                                              .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                                              .st_shndx = SECTION_TEXT,
                                              .st_value = start,
                                              .st_size = area + head->code_end - start};
    }
    return count;
}

static void write_image(debug_image *image, uint64_t area, const sj_stub_area *head)
{
    *image = (debug_image){.header = {.e_type = ET_EXEC,
                                      .e_machine = SJ_MACHINE_ELF,
                                      .e_version = EV_CURRENT,
                                      .e_shoff = offsetof(debug_image, sections),
                                      .e_ehsize = sizeof(image->header),
                                      .e_shentsize = sizeof(image->sections[0]),
                                      .e_shnum = SECTIONS,
                                      .e_shstrndx = SECTION_NAMES}};
    memcpy(image->header.e_ident, ELFMAG, SELFMAG);
    image->header.e_ident[EI_CLASS] = ELFCLASS64;
    image->header.e_ident[EI_DATA] = ELFDATA2LSB;
    image->header.e_ident[EI_VERSION] = EV_CURRENT;
    describe_sections(image, area, head, describe_symbols(image, area, head));
    memcpy(image->names, names, sizeof(names));
    (void)sj_unwind_frames_write((const void *)(uintptr_t)area, image->frames,
                                 frames_address(area));
}

/* Returns the index of `area` in `areas`. If `area` is NULL, returns the index of a free element.
 * Returns MOST_IMAGES if there is none. */
static uint32_t find_index(const void *area)
{
    for (uint32_t i = 0; i < area_count; i++) {
        if (areas[i] == area) {
            return i;
        }
    }
    return area == NULL ? area_count : (uint32_t)MOST_IMAGES;
}

void sj_debugger_add(const void *area)
{
    const sj_stub_area *head = (const void *)((const uint8_t *)area + SJ_STUB_AREA_OFFSET);
    const uint32_t index = find_index(NULL);
    if (head->magic != SJ_STUB_AREA_MAGIC || index == MOST_IMAGES) {
        return;
    }
    code_entry *entry = &files[index].entry;
    code_entry *first = atomic_load(&__jit_debug_descriptor.first);
    area_count += index == area_count ? 1 : 0;
    areas[index] = area;
    write_image(&files[index].image, (uint64_t)(uintptr_t)area, head);
    entry->image = &files[index].image;
    entry->bytes = sizeof(files[index].image);
    atomic_store(&entry->previous, NULL);
    atomic_store(&entry->next, first);
    if (first != NULL) {
        atomic_store(&first->previous, entry);
    }
    atomic_store(&__jit_debug_descriptor.first, entry);
    notify_debugger(ACTION_ADD, entry);
}

void sj_debugger_remove(const void *area)
{
    const uint32_t index = find_index(area);
    if (area == NULL || index == MOST_IMAGES) {
        return;
    }
    code_entry *entry = &files[index].entry;
    code_entry *next = atomic_load(&entry->next);
    code_entry *previous = atomic_load(&entry->previous);
    atomic_store(previous != NULL ? &previous->next : &__jit_debug_descriptor.first, next);
    if (next != NULL) {
        atomic_store(&next->previous, previous);
    }
    notify_debugger(ACTION_REMOVE, entry);
    areas[index] = NULL;
}
