/* Names and bounds of code, collected from symbol tables, debug files and map files. */
#ifndef SJ_AGENT_OBJFILE_SYMBOLS_H
#define SJ_AGENT_OBJFILE_SYMBOLS_H

#include "agent/abi/plan.h"
#include "agent/objfile/elf_view.h"

typedef enum sj_symbol_kind {
    SJ_SYMBOL_LABEL = 0, /* a name inside code that is not marked as a function */
    SJ_SYMBOL_FUNCTION = 1,
    SJ_SYMBOL_RESOLVER = 2 /* IFUNC: the symbol's code chooses an implementation */
} sj_symbol_kind;

typedef struct sj_symbol {
    uint64_t address;
    uint64_t size;    /* 0: unknown */
    const char *name; /* borrowed from the file */
    uint8_t source;   /* sj_symbol_source */
    uint8_t kind;     /* sj_symbol_kind */
    uint8_t receiver; /* receiver of a method, as in sj_plan_function */
    bool is_local;
} sj_symbol;

typedef struct sj_symbols {
    sj_symbol *items;
    size_t count;
    size_t capacity;
} sj_symbols;

/* Appends one symbol. Returns SJ_ENOMEM on failure. */
SJ_MUST_CHECK sj_status sj_symbols_add(sj_symbols *symbols, sj_symbol symbol);

/* Appends the symbols in code sections from all tables of that type (SHT_SYMTAB or SHT_DYNSYM). The
 * names borrow from the view. Returns SJ_ENOMEM on failure. */
SJ_MUST_CHECK sj_status sj_symbols_read(const sj_elf *elf, uint32_t section_type,
                                        sj_symbol_source source, sj_symbols *symbols);

/* Sorts by address and merges symbols of one address, with the largest of their sizes. Of two
 * symbols at one address, it keeps the first in this order:
 *   * a resolver, a function, a label
 *   * a runtime's name, another name
 *   * the lower sj_symbol_source
 *   * a global symbol, a local symbol */
void sj_symbols_sort(sj_symbols *symbols);

void sj_symbols_free(sj_symbols *symbols);

#endif
