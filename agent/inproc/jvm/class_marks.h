/* Marks of classes: which methods of each class the recorder chose. A class is known by its name
 * and loader, so that it has a mark before it is defined. Thread-safe; takes no lock. */
#ifndef SJ_AGENT_INPROC_JVM_CLASS_MARKS_H
#define SJ_AGENT_INPROC_JVM_CLASS_MARKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Allocates the table; a second call does nothing. Returns false if out of memory. Not thread-safe.
 */
bool sj_class_marks_init(void);

/* Frees the table. No thread may use it any longer. */
void sj_class_marks_deinit(void);

/* Returns the key of a class. `name` is its internal form, `loader` the loader's number. */
uint64_t sj_class_marks_key(const char *name, size_t bytes, uint64_t loader);

/* Sets the mark of a class (sj_class_selection). Returns false if the table is full. */
bool sj_class_marks_set(uint64_t key, uint32_t mark);

/* Returns the mark of a class, or SJ_CLASS_UNASKED if none was set. */
uint32_t sj_class_marks_get(uint64_t key);

#endif
