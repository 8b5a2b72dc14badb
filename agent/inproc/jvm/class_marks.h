/* Stores for each class which of its methods the recorder chose (its mark). The key of a class is
 * its name and loader, so that a class can have a mark before it is defined. Thread-safe. Takes no
 * lock. */
#ifndef SJ_AGENT_INPROC_JVM_CLASS_MARKS_H
#define SJ_AGENT_INPROC_JVM_CLASS_MARKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Allocates the table. A second call does nothing. Returns false if out of memory. Not thread-safe.
 */
bool sj_class_marks_init(void);

/* Frees the table. No other thread may use it now. */
void sj_class_marks_deinit(void);

/* Returns the key of a class, which is not 0. `name` is the class's internal name
 * ("java/util/List"), `loader` the loader's number. */
uint64_t sj_class_marks_key(const char *name, size_t bytes, uint64_t loader);

/* Sets the mark of a class (sj_class_selection). Returns false if the table is full. */
bool sj_class_marks_set(uint64_t key, uint32_t mark);

/* Returns the mark of a class, or SJ_CLASS_UNASKED if none was set. */
uint32_t sj_class_marks_get(uint64_t key);

#endif
