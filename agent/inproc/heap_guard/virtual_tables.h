/* Virtual tables for C++ objects whose free is delayed. They report each virtual call on such an
 * object and return zero from it. */
#ifndef SJ_AGENT_INPROC_HEAP_GUARD_VIRTUAL_TABLES_H
#define SJ_AGENT_INPROC_HEAP_GUARD_VIRTUAL_TABLES_H

#include <stdbool.h>
#include <stdint.h>

#define SJ_VIRTUAL_ADDRESS ((UINT64_C(1) << 48) - 1)

enum {
    SJ_VIRTUAL_WORDS = 16, /* Number of words of an object searched for pointers to tables. */
    SJ_VIRTUAL_FUNCTIONS = 1024
};

typedef enum sj_virtual_state {
    SJ_VIRTUAL_UNKNOWN = 0, /* A thread is filling the table. */
    SJ_VIRTUAL_READY = 1,
    SJ_VIRTUAL_TOO_LARGE = 2 /* The program's table has more functions than ours can have. */
} sj_virtual_state;

/* Our replacement of a virtual table of the program. */
typedef struct sj_virtual_table {
    /* Address of the program's table. The bits above SJ_VIRTUAL_ADDRESS are the offset of its
     * pointer in the object. 0 if our table is not used. */
    _Atomic uint64_t key;
    _Atomic uint32_t state; /* An sj_virtual_state. */
    uint32_t reserved;
    int64_t offset_to_top; /* This and the following members have the layout of the C++ ABI. */
    uint64_t type;
    uint64_t functions[SJ_VIRTUAL_FUNCTIONS];
} sj_virtual_table;

/* The first members of a type_info. */
typedef struct sj_type_head {
    uint64_t table;
    uint64_t name;
} sj_type_head;

/* Maps the memory for our tables. If out of memory, sj_virtual_replace replaces nothing. Not
 * thread-safe. */
void sj_virtual_tables_init(void);

/* Replaces the pointers to virtual tables in an object of `count` words by pointers to our tables.
 * Does nothing if the first word does not point to a table with type information. Examines the
 * first SJ_VIRTUAL_WORDS words. Writes a bit for each replaced word to `*replaced` and, if the
 * first word is replaced, the address of the object's type to `*type`. Returns false without a
 * change if a table has too many functions. */
bool sj_virtual_replace(uint64_t *words, uint64_t count, uint64_t *type, uint64_t *replaced);

/* Reports a virtual call on an object whose free is delayed. Every stub calls this function
 * (arch/<machine>/virtual_stubs.S) with the first two arguments of the virtual call, the index in
 * the virtual table, and the return address. Returns the result of the virtual call. */
uint64_t sj_virtual_call_handler(uint64_t first, uint64_t second, uint64_t number, uint64_t site)
    __attribute__((used, visibility("hidden")));

/* Returns our table to which the first word of an object points, or NULL. `object` may be any
 * number. */
const sj_virtual_table *sj_virtual_table_of(uint64_t object);

/* Copies memory without faulting. Returns false if it is not mapped. */
bool sj_virtual_read(uint64_t from, void *to, uint64_t bytes);

/* True if a word points to one of our tables. */
bool sj_virtual_is_table(uint64_t word);

#endif
