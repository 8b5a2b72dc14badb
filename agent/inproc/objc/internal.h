/* What the files of the dispatch technique share. */
#ifndef SJ_AGENT_INPROC_OBJC_INTERNAL_H
#define SJ_AGENT_INPROC_OBJC_INTERNAL_H

#include "agent/inproc/hooks/dispatch.h"
#include "agent/inproc/objc/dispatch.h"

#include <stddef.h>

/* The runtime's own functions that are used; the same in all runtimes. */
typedef struct sj_objc_api {
    const char *(*class_name)(const void *class);
    const char *(*selector_name)(const void *selector);
    const void *(*superclass)(const void *class);
    bool (*is_meta)(const void *class);
    const void *(*instance_method)(const void *class, const void *selector);
    uint64_t (*implementation)(const void *method);
    bool has_method_lists; /* GCC's class structure */
} sj_objc_api;

extern sj_objc_api sj_objc_runtime __attribute__((visibility("hidden")));

/* sj_objc_find_api fills it in; false: the process has no runtime that is known. */
bool sj_objc_find_api(void);

/* A method as seen from a class of receivers. */
typedef struct sj_objc_method {
    const void *class;    /* of the receiver; NULL: the entry is free */
    const void *owner;    /* class that defines the method */
    const char *selector; /* the runtime's one copy of the name */
    uint32_t function;    /* 0: not wanted */
} sj_objc_method;

/* sj_objc_find_method finds a registered method; NULL: none. Under the lock. */
const sj_objc_method *sj_objc_find_method(const sj_objc_method *key);

/* sj_objc_find_owner finds the class that defines the method that `from` and its subclasses run
 * for `selector`, called `name`. NULL when none does, or when its code is not `*code` (0: any;
 * it is filled in). Sends no message, so that the lookup neither resolves nor initialises anything.
 */
const void *sj_objc_find_owner(const void *from, const void *selector, const char *name,
                               uint64_t *code);

/* sj_objc_owns_method returns whether a class itself, and none that it descends from, has a method
 * of the runtime. */
bool sj_objc_owns_method(const void *class, const void *method, const void *selector);

/* The names of a method to register, written before the lock is taken: the runtime takes its own.
 */
typedef struct sj_objc_draft {
    uint32_t name_bytes;
    uint32_t lineage_bytes;
    char name[SJ_OBJC_NAME_BYTES];
    char lineage[SJ_OBJC_LINEAGE_BYTES];
} sj_objc_draft;

/* sj_objc_write_name writes the name of a method, at most SJ_OBJC_NAME_BYTES; returns its bytes
 * with the NUL. Not under the lock. */
uint32_t sj_objc_write_name(const sj_objc_method *method, char *name);

/* sj_objc_describe writes the names of a method. Not under the lock. */
void sj_objc_describe(const sj_objc_method *method, sj_objc_draft *draft);

/* sj_objc_register_method registers a described method with its code, unless it is known. False
 * when there is no room or the recorder refused it. Under the lock. */
bool sj_objc_register_method(const sj_objc_method *method, uint64_t code,
                             const sj_objc_draft *draft, sj_objc_register registers);

/* sj_objc_stubs_open maps the room for stubs and opens those that were closed; false when there is
 * no memory. */
bool sj_objc_stubs_open(void);

/* sj_objc_stubs_close makes every stub go straight to the code behind it, whatever becomes of the
 * agent. Other threads may be in stubs. */
void sj_objc_stubs_close(void);

/* sj_objc_stub_make makes the record (and stub) of a method, or opens the one that an earlier
 * session left; NULL when the room is used up. Under the lock. */
const sj_dispatch_record *sj_objc_stub_make(const sj_objc_method *method, uint64_t target);

/* sj_objc_stub_make_plain makes one that calls `target` and passes what that returns through
 * sj_objc_plain_code; nothing is recorded. NULL and locking as sj_objc_stub_make. */
const sj_dispatch_record *sj_objc_stub_make_plain(uint64_t target);

/* sj_objc_record_of is the record that a stub enters; NULL for any other address. */
const sj_dispatch_record *sj_objc_record_of(uint64_t code);

/* sj_objc_plain_code is the code that a stub enters; any other address is returned unchanged. */
uint64_t sj_objc_plain_code(uint64_t code);

/* sj_arch_objc_plain is entered as sj_arch_dispatch_entry is, by methods of few arguments that
 * return an address of code (arch/<machine>/message.S). */
void sj_arch_objc_plain(void);

/* sj_objc_stub_of is the code that enters a record. */
uint64_t sj_objc_stub_of(const sj_dispatch_record *record);

/* sj_objc_stubs_after_fork unshares the stubs; false when memory is short: none can be made. */
bool sj_objc_stubs_after_fork(void);

uint32_t sj_objc_stub_count(void);
uint32_t sj_objc_method_count(void);

/* sj_objc_message finds the record of a message, for the assembly of objc_msgSend; NULL: it is not
 * recorded; SJ_OBJC_UNKNOWN: it is new. `target` is where the message goes on. Touches no
 * vector register. */
const sj_dispatch_record *sj_objc_message(const void *receiver, const void *selector,
                                          uint64_t target);
#define SJ_OBJC_UNKNOWN ((const sj_dispatch_record *)1)

/* sj_objc_new_message is for those: it asks the runtime, whose code uses any register. */
const sj_dispatch_record *sj_objc_new_message(const void *receiver, const void *selector,
                                              uint64_t target);

/* What objc_msgSend and objc_msgSend_stret are rebound to (arch/<machine>/message.S), and where
 * they go on: the runtime's own. */
void sj_arch_objc_message(void);
void sj_arch_objc_message_stret(void);
/* sj_arch_objc_can_keep_vectors: this machine can run them. */
bool sj_arch_objc_can_keep_vectors(void);
extern uint64_t sj_objc_real_message __attribute__((visibility("hidden")));
extern uint64_t sj_objc_real_message_stret __attribute__((visibility("hidden")));

#endif
