/* Memory files that come along with packets of agents. */
#ifndef SJ_AGENT_LINK_MEMORY_FILE_H
#define SJ_AGENT_LINK_MEMORY_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* sj_link_receive_file receives one packet, as recv does, and the descriptor that came with it. The
 * caller closes `*file`. It is -1 if the packet is empty or carries no descriptor or several, which
 * are closed. Does not block. */
ssize_t sj_link_receive_file(int socket, void *packet, size_t capacity, int *file);

/* sj_memory_file_is returns whether a descriptor is that of a memory file; -1 is none. */
bool sj_memory_file_is(int file);

/* sj_memory_file_read and sj_memory_file_write do so from its first byte on; false: not all. */
bool sj_memory_file_read(int file, uint8_t *bytes, size_t size);
bool sj_memory_file_write(int file, const uint8_t *bytes, size_t size);

#endif
